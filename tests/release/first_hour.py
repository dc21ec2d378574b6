"""Follow README on a machine that has Python 3.11, make, git and the essential packages only (`make first-hour`).

The machine is a root of its own (chroot) with an empty home: no Node, Go, compiler or kubectl, and no cache. In it this
clones the last commit, calls `make run`, and runs the commands of README as they stand there. It prints the seconds and
the processor seconds of each step, and ends with 1 if a command fails or the whole takes more than five minutes.

It needs Linux with `unshare`, Debian's `dpkg`, and the network (packages come from their registries).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.docs.shown.pages import blocks_of
from tests.processes import processes

SOURCE = Path(__file__).resolve().parents[2]
LIMIT_S = 300.0
STOP_S = 40.0
USER = 65533
INSIDE_FLAG = "--inside"
#: Beside the essential packages of Debian, which every system of that family has.
PROGRAMS = ("python3.11", "make", "git")
ABSENT = (
    "node",
    "npm",
    "go",
    "gcc",
    "cc",
    "clang",
    "cargo",
    "docker",
    "kubectl",
    "helm",
    "uv",
    "pip",
)
#: Read only, as on the host: libraries, certificates, the resolver's settings. Programs are copied one by one.
BIND_MOUNTED = ("usr/lib", "usr/lib64", "usr/share", "etc", "proc", "dev")
UP_LINE = re.compile(r"kaiweb is up after ([\d.]+) s")


@dataclass(frozen=True, slots=True)
class Step:
    """What one command took."""

    command: str
    seconds: float
    cpu_seconds: float


def commands(page: str) -> list[str]:
    """Return the commands for the second terminal: the lines after `$` in the console blocks, then the sh blocks."""
    lines: dict[str, list[str]] = {"console": [], "sh": []}
    for block in blocks_of(page, "README.md"):
        lines.get(block.language, []).extend(block.text.splitlines())
    typed = [
        line.removeprefix("$ ").partition(" #")[0].rstrip()
        for line in lines["console"]
        if line[:2] == "$ "
    ]
    return typed + [line for line in lines["sh"] if line]


def script(lines: Sequence[str]) -> str:
    """Return a bash script that runs the commands in one shell and writes `real user system` of each to `times`."""
    run = (
        'run() { { time eval "$1" 2>&4; } 4>&2 2>>"$TIMES" || { echo "failed: $1" >&2; exit 1; }; }'
    )
    calls = [f"echo {shlex.quote('$ ' + line)}; run {shlex.quote(line)}" for line in lines]
    return "\n".join(["TIMEFORMAT='%R %U %S'", "TIMES=$HOME/times", run, *calls]) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Build the root in a mount namespace of its own, follow README in it, and report."""
    if arguments[:1] == [INSIDE_FLAG]:
        return follow(Root(Path(arguments[1])))
    namespaces = ["--mount"] if os.geteuid() == 0 else ["--mount", "--user", "--map-root-user"]
    with tempfile.TemporaryDirectory(prefix="first-hour-", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, "-m", "tests.release.first_hour", INSIDE_FLAG, folder]
        return subprocess.run(
            ["unshare", *namespaces, *command], cwd=SOURCE, check=False
        ).returncode


@dataclass(slots=True)
class Root:
    """The root of the machine and the programs that run in it."""

    folder: Path
    port: int = 0
    is_other_user: bool = False

    def build(self) -> None:
        """Copy the programs, bind the folders, make an empty home, and put the repository where it is cloned from."""
        self.is_other_user = Path("/proc/self/uid_map").read_text().split()[2] != "1"
        self.folder.chmod(0o755)
        (self.folder / "usr" / "bin").mkdir(parents=True)
        for program in _essential_programs():
            shutil.copy2(program, self.folder / "usr" / "bin" / program.name)
        for name in PROGRAMS:
            shutil.copy2(f"/usr/bin/{name}", self.folder / "usr" / "bin" / name)
        (self.folder / "usr" / "bin" / "python3").symlink_to("python3.11")
        for name in ("bin", "sbin", "lib", "lib64"):
            (self.folder / name).symlink_to(f"usr/{'bin' if name == 'sbin' else name}")
        for name in BIND_MOUNTED:
            (self.folder / name).mkdir(parents=True)
            subprocess.run(["mount", "--rbind", f"/{name}", self.folder / name], check=True)
        for name in ("tmp", "home/new", "srv"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "tmp").chmod(0o1777)
        repository = self.folder / "srv" / "kaiweb.git"
        subprocess.run(["git", "clone", "--quiet", "--bare", SOURCE, repository], check=True)
        if self.is_other_user:
            subprocess.run(
                ["chown", "-R", f"{USER}:{USER}", self.folder / "home", self.folder / "srv"],
                check=True,
            )
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]

    def start(
        self, command: str, folder: str = "/home/new", *, output: int | None = None
    ) -> subprocess.Popen[str]:
        """Start a command of bash in the root, with an environment that holds nothing of ours.

        Parameters
        ----------
        output : where it writes to, as `subprocess.Popen` takes it; None: where we do
        """
        user = [f"--userspec={USER}:{USER}"] if self.is_other_user else []
        clean = ["env", "-i", "PATH=/usr/bin:/bin", "HOME=/home/new", f"KAIWEB_PORT={self.port}"]
        full = [
            "chroot",
            *user,
            str(self.folder),
            *clean,
            "bash",
            "-c",
            f"cd {folder} && {command}",
        ]
        errors = None if output is None else subprocess.STDOUT
        return subprocess.Popen(
            full, text=True, start_new_session=True, stdout=output, stderr=errors
        )

    def run(self, command: str) -> Step:
        """Run a command to its end.

        Raises
        ------
        RuntimeError : it failed
        """
        began, before = time.monotonic(), os.times()
        if self.start(command).wait():
            raise RuntimeError(f"failed: {command}")
        after = os.times()
        used = sum(after[2:4]) - sum(before[2:4])
        return Step(command, time.monotonic() - began, used)


@dataclass(slots=True)
class Output:
    """Prints what a process writes, and remembers it."""

    stream: IO[str]
    lines: list[str] = field(default_factory=list)

    def read(self) -> None:
        """Read to the end."""
        for line in self.stream:
            self.lines.append(line)
            print(f"    {line}", end="", flush=True)


def follow(root: Root) -> int:
    """Do what README says, print what each step took, and return the exit code."""
    root.build()
    packages = " ".join(ABSENT)
    root.run(f"for p in {packages}; do ! command -v $p || exit 1; done")
    steps = [root.run("git clone --quiet /srv/kaiweb.git kaiweb")]
    began = time.monotonic()
    server = root.start("exec make run", "/home/new/kaiweb", output=subprocess.PIPE)
    assert server.stdout is not None
    output = Output(server.stdout)
    reader = threading.Thread(target=output.read, daemon=True)
    reader.start()
    try:
        steps += list(_await_start(server, output, began))
        page = (root.folder / "home/new/kaiweb/README.md").read_text()
        steps += list(_second_terminal(root, commands(page)))
    finally:
        _stop(server)
        reader.join(timeout=STOP_S)
    return report(steps)


def report(steps: Sequence[Step], write: Callable[[str], object] = print) -> int:
    """Print the steps and their sums; return 1 if they took longer than the limit."""
    total = sum(step.seconds for step in steps)
    write(f"{'seconds':>8} {'cpu':>7}  step")
    for step in [*steps, Step("all", total, sum(step.cpu_seconds for step in steps))]:
        write(f"{step.seconds:8.1f} {step.cpu_seconds:7.1f}  {step.command}")
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    write(f"{os.cpu_count()} processors, load {load}; limit {LIMIT_S:.0f} s")
    return int(total > LIMIT_S)


def _await_start(server: subprocess.Popen[str], output: Output, began: float) -> Iterator[Step]:
    """Yield the set-up and the start once the server says that it is up."""
    while not any("kaiweb is up" in line for line in output.lines):
        if server.poll() is not None or time.monotonic() - began > 4 * LIMIT_S:
            raise RuntimeError("`make run` did not come up")
        time.sleep(0.1)
    seconds = time.monotonic() - began
    match = UP_LINE.search("".join(output.lines))
    assert match is not None
    start_s = float(match[1])
    cpu_s = _processor_seconds(server.pid)
    yield Step("make run: set-up (with the processor seconds of both)", seconds - start_s, cpu_s)
    yield Step("make run: start, until `kaiweb is up`", start_s, 0.0)


def _second_terminal(root: Root, lines: Sequence[str]) -> Iterator[Step]:
    (root.folder / "home/new/commands.sh").write_text(script(lines))
    exit_code = root.start("bash ../commands.sh", "/home/new/kaiweb").wait()
    if exit_code:
        raise RuntimeError("a command of README failed")
    times = (root.folder / "home/new/times").read_text().splitlines()
    for line, seconds in zip(lines, times, strict=True):
        real, user, system = map(float, seconds.split())
        yield Step(line, real, user + system)


def _stop(server: subprocess.Popen[str]) -> None:
    """Press Ctrl-C, which reaches every process of the terminal."""
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGINT)
        server.wait(timeout=STOP_S)


def _processor_seconds(pid: int) -> float:
    """Return the processor seconds of a process and of all below it, with those of their ended children."""
    snapshot = list(processes())
    seconds, family = 0.0, [pid]
    for parent in family:
        seconds += sum(
            process.cpu_s + process.ended_cpu_s for process in snapshot if process.pid == parent
        )
        family += [process.pid for process in snapshot if process.parent == parent]
    return seconds


def _essential_programs() -> Iterator[Path]:
    """Yield the programs of Debian's essential packages (which every system of that family has), except Perl."""
    package_lines = subprocess.run(
        ["dpkg-query", "-W", "-f=${Essential} ${Package}\\n"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    packages = [line.split()[1] for line in package_lines.splitlines() if line.startswith("yes")]
    files = subprocess.run(
        ["dpkg", "-L", *packages], capture_output=True, text=True, check=True
    ).stdout
    for name in files.splitlines():
        program = Path("/usr/bin") / Path(name).name
        if (
            re.fullmatch(r"(/usr)?/bin/[^/]+", name)
            and program.is_file()
            and program.name != "perl"
        ):
            yield program


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except RuntimeError as error:
        print(f"first-hour: {error}", file=sys.stderr)
        raise SystemExit(1) from error
