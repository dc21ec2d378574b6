"""Run the management command line as `kaiweb` or `python -m kaiweb`."""

import os
import sys

from kube.process.files import use_private_umask

USAGE_EXIT = 2


def main() -> None:
    """Run a command.

    The probe of a process and the commands of `kaiweb.terminal` need no Django; every other name is a management
    command, run with the local settings unless DJANGO_SETTINGS_MODULE names others.
    """
    use_private_umask()
    if sys.argv[1:2] == ["healthy"]:
        from kaiweb.health import probe

        sys.exit(probe.main(sys.argv[2:]))
    from kaiweb.terminal import program

    if program.is_for_terminal(sys.argv[1:]):
        program.main()  # ends the process, as click does
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kaiweb.settings.local")
    from django.conf import settings
    from django.core.management import execute_from_command_line

    from kaiweb.settings.env import EnvError

    try:
        settings.INSTALLED_APPS  # noqa: B018  (loads the settings, which read the environment)
    except EnvError as error:
        sys.stderr.write(f"kaiweb: {error}\n")
        sys.exit(USAGE_EXIT)
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
