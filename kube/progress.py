"""What each thread of this process is doing, in a small file that others read even while the process hangs.

The judge of a hang must be another process: a C call that never returns keeps the interpreter lock, so no
thread of this process would ever run again. Each thread that can hang has a `Track`, a record in a shared
memory file `<home>/run/<process>.beat`. It holds the time of the last sign of life, how long the next one
may take, and the object in hand. Signs are written before the work, so that the file names what the
process hangs on.

    track().beat("what")      alive, on to something else; the next sign is due within a limit
    track().take("Pod", pod, "where")   the same, with an object in hand
    track().rest()            waits for work, perhaps for long: not judged until the next sign

Before `start` (tests, one-shot commands) a track writes into memory that nobody reads. Times are
`time.monotonic`, which all processes of a machine share and no change of the clock moves.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import mmap
import os
import signal
import struct
import threading
import time
import weakref
from dataclasses import dataclass, field
from pathlib import Path

from kube.left_out import Held, LeftOut
from kube.objects.meta import KubeObject

log = logging.getLogger(__name__)

FOLDER = "run"
PROCESS_VARIABLE = "KAIWEB_PROCESS"
MAIN = "MainThread"
#: How long a step may take that only computes, one that waits for a server (a request may take 60 s), and a
#: start with all its imports and first lists.
HANG_S = float(os.environ.get("KAIWEB_HANG_S") or 30.0)
WAIT_S = 4 * HANG_S
START_S = max(120.0, WAIT_S)
TRACEBACK_SIGNAL = signal.SIGUSR2

_MAGIC = b"kaibeat1"
_HEADER = struct.Struct("=8sIId")  # magic, pid, tracks in use, start
_SIGN = struct.Struct("=ddH")  # moment, limit (0: rests), length of the text
_TRACK_BYTES = 768
_TEXT_BYTES = _TRACK_BYTES - _SIGN.size
_MOST_TRACKS = 128
_FIRST = 64  # where the tracks begin


class Track:
    """One thread's record. Only this thread writes it (a pool may `touch` the track it works for)."""

    __slots__ = ("_buffer", "_left_out", "_name", "_offset", "_text_at", "is_at_rest")

    def __init__(
        self, name: str, buffer: bytearray | mmap.mmap, offset: int, left_out: LeftOut
    ) -> None:
        self._name = name
        self._buffer = buffer
        self._offset = offset
        self._text_at = offset + _SIGN.size
        self._left_out = left_out
        self.is_at_rest = True

    def beat(self, doing: str, limit_s: float = HANG_S) -> None:
        """Note that the thread lives and what it does now, with no object in hand."""
        self._write(f"{self._name}\0{doing}", limit_s)

    def take(self, kind: str, value: KubeObject, place: str, limit_s: float = HANG_S) -> bool:
        """Note the object that is worked on next; False if it must be left out: a life before hung on it here."""
        meta = value.metadata
        uid, version = meta.uid, meta.resource_version
        if self._left_out and self._left_out.holds(place, uid, version):
            return False
        self._write(
            f"{self._name}\0{place}\0{kind}\0{meta.namespace}\0{meta.name}\0{uid}\0{version}",
            limit_s,
        )
        return True

    def touch(self) -> None:
        """Note that the thread lives and does what it did."""
        struct.pack_into("=d", self._buffer, self._offset, time.monotonic())

    def rest(self) -> None:
        """Note that the thread waits for work."""
        self.is_at_rest = True
        _SIGN.pack_into(self._buffer, self._offset, time.monotonic(), 0.0, 0)

    def __del__(self) -> None:
        """Rest when the thread has ended: nobody is left who could give another sign."""
        if _SIGN is not None:  # module globals are gone when the interpreter ends
            self.rest()

    def _write(self, text: str, limit_s: float) -> None:
        self.is_at_rest = False
        encoded = text.encode(errors="replace")[:_TEXT_BYTES]
        length = len(encoded)
        self._buffer[self._text_at : self._text_at + length] = encoded
        _SIGN.pack_into(self._buffer, self._offset, time.monotonic(), limit_s, length)


# ------------------------------------------------------------------------------------------- writing


@dataclass(slots=True)
class _Writer:
    """The file of this process, and which thread has which track."""

    buffer: mmap.mmap
    left_out: LeftOut
    owners: list[weakref.ref[threading.Thread]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def claim(self, thread: threading.Thread) -> Track | None:
        """Return a track for a thread, one of an ended thread if there is one; None when all are taken."""
        with self.lock:
            for number, owner in enumerate(self.owners):
                former = owner()
                if former is None or not former.is_alive():
                    self.owners[number] = weakref.ref(thread)
                    return self._track(number, thread)
            if len(self.owners) == _MOST_TRACKS:
                return None
            self.owners.append(weakref.ref(thread))
            made = self._track(len(self.owners) - 1, thread)
            struct.pack_into("=I", self.buffer, 12, len(self.owners))
            return made

    def _track(self, number: int, thread: threading.Thread) -> Track:
        made = Track(thread.name, self.buffer, _FIRST + number * _TRACK_BYTES, self.left_out)
        made.rest()
        return made


_writer: _Writer | None = None
_local = threading.local()


def start(process: str, home: Path) -> None:
    """Begin to write `<home>/run/<process>.beat`; call it first thing, in the main thread.

    The supervisor's name for the process overrules `process`. `TRACEBACK_SIGNAL` makes the process write the
    stacks of all threads to its log, also in the middle of a C call.
    """
    global _writer, _local
    name = os.environ.get(PROCESS_VARIABLE) or process
    try:
        buffer = _new_file(beat_file(home, name))
    except OSError as error:
        # Work goes on without a judge, as on a full disk.
        log.warning("no signs of life can be given: %s", error)
        return
    _writer = _Writer(buffer, LeftOut.of(home, name))
    _local = threading.local()
    # No standard error that is a file (under pytest): no tracebacks, and nothing else is lost.
    with contextlib.suppress(ValueError, OSError, AttributeError):
        faulthandler.register(TRACEBACK_SIGNAL, all_threads=True)
    track().beat("starting", START_S)


def stop() -> None:
    """Let go of the file: a process that ends in order is not judged on its way out."""
    global _writer, _local
    if _writer is not None:
        struct.pack_into("=I", _writer.buffer, 12, 0)
    _writer, _local = None, threading.local()


def track() -> Track:
    """Return the track of the calling thread."""
    try:
        found: Track = _local.track
    except AttributeError:
        thread = threading.current_thread()
        claimed = _writer.claim(thread) if _writer is not None else None
        found = _local.track = claimed or Track("", bytearray(_TRACK_BYTES), 0, LeftOut())
    return found


def beat_file(home: Path, process: str) -> Path:
    """Return where a process writes its signs of life."""
    return home / FOLDER / f"{process}.beat"


def _new_file(file: Path) -> mmap.mmap:
    """Return a mapped file of this process, put in place in one step: a reader never sees half of it."""
    file.parent.mkdir(mode=0o700, exist_ok=True)
    scratch = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        # Real blocks: writing to a hole of a file on a full disk would end the process with SIGBUS.
        os.posix_fallocate(descriptor, 0, _FIRST + _MOST_TRACKS * _TRACK_BYTES)
        buffer = mmap.mmap(descriptor, 0)
    finally:
        os.close(descriptor)
    _HEADER.pack_into(buffer, 0, _MAGIC, os.getpid(), 0, time.monotonic())
    scratch.replace(file)
    return buffer


# ------------------------------------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """What one thread last wrote; `limit_s` is 0 while it waits for work."""

    thread: str
    doing: str
    moment: float
    limit_s: float
    held: Held | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """What a process last wrote."""

    pid: int
    started_at: float
    signs: tuple[Sign, ...]

    def latest(self) -> float:
        """Return the time of the last sign of any thread."""
        return max((sign.moment for sign in self.signs), default=self.started_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standstill:
    """A thread that has given no sign for longer than it may.

    Attributes
    ----------
    since : monotonic time of its last sign
    doing : what it said it would do
    held : the object it hangs on; None if it had none in hand, or was stopped from outside
    """

    since: float
    doing: str
    held: Held | None

    def what(self) -> str:
        """Return what it does, and with which object."""
        return f"{self.doing}: {self.held.text()}" if self.held else self.doing

    def text(self, now: float) -> str:
        """Return a clause for logs and pages."""
        return f"no progress for {now - self.since:.0f} s ({self.what()})"


def read(file: Path) -> Beat | None:
    """Return what a process wrote; None without a file, or where it is none of ours."""
    try:
        data = file.read_bytes()
    except OSError:
        return None
    if len(data) < _FIRST or not data.startswith(_MAGIC):
        return None
    _, pid, used, started_at = _HEADER.unpack_from(data)
    offsets = range(_FIRST, _FIRST + used * _TRACK_BYTES, _TRACK_BYTES)
    signs = tuple(_sign(data, offset) for offset in offsets if offset + _TRACK_BYTES <= len(data))
    return Beat(pid=pid, started_at=started_at, signs=signs)


def _sign(data: bytes, offset: int) -> Sign:
    moment, limit_s, length = _SIGN.unpack_from(data, offset)
    text_at = offset + _SIGN.size
    text = data[text_at : text_at + length].decode(errors="replace")
    thread, _, what = text.partition("\0")
    doing, *rest = what.split("\0")
    held = Held(doing, *rest) if len(rest) == 5 else None
    return Sign(thread=thread, doing=doing, moment=moment, limit_s=limit_s, held=held)


def standstill(beat: Beat, now: float, *, awake_since: float = float("-inf")) -> Standstill | None:
    """Return how the process stands still, or None.

    Parameters
    ----------
    awake_since : since when the judge itself has run without a pause; a pause of the whole machine is
        nobody's standstill
    """
    late = [
        sign
        for sign in beat.signs
        if sign.limit_s and now - max(sign.moment, awake_since) > sign.limit_s
    ]
    if not late:
        return None
    longest = min(late, key=lambda sign: sign.moment)
    return Standstill(since=longest.moment, doing=longest.doing, held=_suspect(beat, late, longest))


def _suspect(beat: Beat, late: list[Sign], longest: Sign) -> Held | None:
    """Return the object that is to blame.

    When the main thread stands still too, something keeps the interpreter lock: then the thread that wrote
    last has it. Otherwise the others go on, and the one that is silent for longest is the one that hangs.
    """
    if is_stopped(beat.pid):
        return None
    if all(sign.thread != MAIN for sign in late):
        return longest.held
    last = max(beat.signs, key=lambda sign: sign.moment)
    return last.held or longest.held


def is_stopped(pid: int) -> bool:
    """Return whether somebody has stopped the process (SIGSTOP, a debugger); False where that cannot be seen."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] in ("T", "t")
