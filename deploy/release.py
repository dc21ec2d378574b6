"""Build a release: wheel, sdist, chart, SBOM and checksums. The same commit gives the same bytes.

`make dist` calls it after the dashboard is built. Times in the archives are those of `SOURCE_DATE_EPOCH`,
which is the time of the last commit if it is not set.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DASHBOARD = Path("frontend") / "web" / "dist" / "manifest.json"
CHARTS = Path("deploy") / "helm"
LOCK = Path("requirements") / "run.txt"
SUMS = "SHA256SUMS"
# The earliest time that a zip archive can hold, for sources without Git.
EARLIEST = 315532800


class ReleaseError(RuntimeError):
    """The release cannot be built; the message says what is missing."""


def main(argv: list[str] | None = None) -> int:
    """Build the release, print its checksums, and return the exit code."""
    parser = argparse.ArgumentParser(description="Build wheel, sdist, chart, SBOM and checksums.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder, emptied first")
    options = parser.parse_args(argv)
    try:
        for line in build(ROOT, options.output.resolve()):
            print(line)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def build(source: Path, output: Path) -> list[str]:
    """Fill the folder and return the lines of its checksum file.

    Raises
    ------
    ReleaseError : the dashboard is not built, or a tool fails
    """
    if not (source / DASHBOARD).is_file():
        raise ReleaseError(f"{DASHBOARD} is missing; run `make setup` first")
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    epoch = commit_time(source)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0"}
    for target in ("wheel", "sdist"):
        _run(source, environment, "-m", "hatchling", "build", "--target", target, "-d", str(output))
    version = next(output.glob("*.tar.gz")).name.removesuffix(".tar.gz")
    write_bill_of_materials(source, environment, output / f"{version}.cdx.json")
    for chart in sorted((source / CHARTS).glob("*/Chart.yaml")):
        pack(chart.parent, output / f"{chart.parent.name}-chart.tgz", epoch)
    return write_checksums(output)


def commit_time(source: Path) -> int:
    """Return SOURCE_DATE_EPOCH, else the time of the last commit, else the earliest time of a zip archive."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    command = ["git", "-C", str(source), "log", "-1", "--format=%ct"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return EARLIEST
    return int(result.stdout)


def write_bill_of_materials(source: Path, environment: Mapping[str, str], file: Path) -> None:
    """Write the locked run-time packages with their hashes in CycloneDX's format."""
    # fmt: off
    _run(
        source, environment, "-m", "cyclonedx_py", "requirements", str(LOCK),
        "--pyproject", "pyproject.toml", "--output-reproducible", "--of", "JSON", "-o", str(file),
    )
    # fmt: on


def pack(folder: Path, archive: Path, epoch: int) -> None:
    """Write a tar.gz of a folder in which order, times and owners depend on nothing but its content."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(_files_of(folder)):
            member = tarfile.TarInfo(str(Path(folder.name) / path.relative_to(folder)))
            member.size, member.mtime, member.mode = path.stat().st_size, epoch, 0o644
            with path.open("rb") as stream:
                tar.addfile(member, stream)
    archive.write_bytes(gzip.compress(content.getvalue(), mtime=epoch))


def _files_of(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder. Links to folders are followed: the chart has one to the definitions."""
    for place, _folders, names in os.walk(folder, followlinks=True):
        yield from (Path(place) / name for name in names)


def write_checksums(output: Path) -> list[str]:
    """Write SHA256SUMS, which `sha256sum --check` reads, and return its lines."""
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}"
        for file in sorted(output.iterdir())
        if file.is_file() and not file.name.startswith(".")
    ]
    (output / SUMS).write_text("\n".join(lines) + "\n")
    return lines


def _run(source: Path, environment: Mapping[str, str], *arguments: str) -> None:
    with tempfile.TemporaryFile("w+") as log:
        result = subprocess.run(
            [sys.executable, *arguments],
            cwd=source, env=environment, stdout=log, stderr=log, check=False,
        )  # fmt: skip
        if result.returncode:
            log.seek(0)
            raise ReleaseError(f"`python {' '.join(arguments)}` failed:\n{log.read()}")


if __name__ == "__main__":
    raise SystemExit(main())
