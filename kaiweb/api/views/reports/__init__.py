"""Views of reports: the audit log, and the usage of whole months."""
