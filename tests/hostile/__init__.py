"""Objects with hostile values in every field that is read: no reader may stop on them."""
