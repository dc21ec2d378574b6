"""An amount without an end, as the custom resource and as REST write it. Pure."""

from __future__ import annotations

UNLIMITED = -1.0
UNLIMITED_WORD = "unlimited"
