"""The rules of the scheduler, one file each;  lists them."""
