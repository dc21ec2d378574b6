"""Objects with hostile values in every field that is read: nobody may stop on them."""
