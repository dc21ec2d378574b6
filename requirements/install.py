"""Install pinned packages into the environment that runs this script: with uv, or with pip where uv cannot.

uv needs a tenth of the processor time of pip. It does not read the settings of pip (an index of the company, its
certificates), so those are passed on as its own variables. A setting that has no counterpart, or a failure of uv,
makes pip install the packages, so that nothing works worse than with pip alone.

    python requirements/install.py --require-hashes -r requirements/run.txt

The arguments are those of `pip install`, as far as uv knows them too.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
UV = (sys.executable, "-m", "uv", "--quiet", "pip", "install", "--python", sys.executable)

#: Setting of pip -> variable of uv, which wants a list separated by a space or a comma.
VARIABLES: Mapping[str, str] = {
    "cert": "SSL_CERT_FILE",
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
COMMA_SEPARATED = frozenset({"find-links"})
#: They change nothing about which packages are installed from where.
WITHOUT_EFFECT = frozenset(
    {
        "break-system-packages", "cache-dir", "disable-pip-version-check", "no-cache-dir", "no-color",
        "no-compile", "no-input", "no-python-version-warning", "progress-bar", "quiet", "require-virtualenv",
        "retries", "root-user-action", "verbose",
    }
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Install, and return the exit code of the program that did it."""
    # What is imported is compiled at its first import; most modules never are.
    pip = (*PIP, "install", "--quiet", "--no-compile", *arguments)
    environment = uv_environment(pip_settings()) if importlib.util.find_spec("uv") else None
    if environment is not None:
        completed = subprocess.run(
            (*UV, *arguments), env={**os.environ, **environment}, check=False
        )
        if completed.returncode == 0:
            return 0
        print("install: uv could not do it, so pip tries", file=sys.stderr)
    return subprocess.run(pip, check=False).returncode


def uv_environment(settings: Mapping[str, str]) -> dict[str, str] | None:
    """Return the settings of pip as variables of uv; None if one of them has no counterpart."""
    # pip chooses among all indexes; the hashes make sure that it is the right file.
    variables = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    for name, value in settings.items():
        if name in WITHOUT_EFFECT:
            continue
        if name not in VARIABLES:
            return None
        separator = "," if name in COMMA_SEPARATED else " "
        variables[VARIABLES[name]] = separator.join(value.split())
    return variables


def pip_settings() -> dict[str, str]:
    """Return name -> value of what files and variables set for pip, the strongest last."""
    listed = subprocess.run(
        (*PIP, "config", "list"), capture_output=True, text=True, check=False
    ).stdout
    return read_settings(listed)


def read_settings(listed: str) -> dict[str, str]:
    """Return name -> value from the lines of `pip config list`, such as `global.cert='/a'`."""
    settings = {}
    for line in listed.splitlines():
        key, equals, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if equals and section in ("global", "install", ":env:"):
            settings[name] = str(ast.literal_eval(value))
    return settings


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
