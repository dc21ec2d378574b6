"""Run the management command line as `kaiweb` or `python -m kaiweb`."""

import os
import sys


def main() -> None:
    """Hand the arguments to Django, with the local settings unless others are named."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kaiweb.settings.local")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
