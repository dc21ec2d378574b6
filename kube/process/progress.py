"""Record what each thread of this process is doing, in a file that other processes can read during a hang.

Only another process can detect a hang, because a C call that never returns keeps the interpreter lock and no
thread of this process runs again. Each thread that can hang has a `Track`, a record in a shared
memory file `<home>/run/<process>.beat`. It holds the time of the last sign of life, how long the next one
may take, and the object in hand. Signs are written before the work, so that after a hang the file names the
object.

    track().beat("what")      begins a step; the next sign is due within a limit
    track().take("Pod", pod, "where")   begins work on an object
    track().rest()            waits for work, for any time: not checked until the next sign

Before `start` (tests, one-shot commands) a track writes into private memory. Times are
`time.monotonic`, which is the same in all processes of a machine and does not jump with the clock.
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

from kube.objects.meta import KubeObject
from kube.process.left_out import HeldObject, LeftOut

log = logging.getLogger(__name__)

FOLDER = "run"
PROCESS_VARIABLE = "KAIWEB_PROCESS"
MAIN = "MainThread"
#: The longest time for a step that only computes, for one that waits for a server (a request may take 60 s),
#: and for a start with all its imports and first lists.
HANG_S = float(os.environ.get("KAIWEB_HANG_S") or 30.0)
WAIT_S = 4 * HANG_S
START_S = max(120.0, WAIT_S)
TRACEBACK_SIGNAL = signal.SIGUSR2

_MAGIC = b"kaibeat1"
_HEADER = struct.Struct("=8sIId")  # magic, pid, tracks in use, start
_SIGN = struct.Struct("=ddH")  # moment, limit (0: rests), length of the text
_TRACK_BYTES = 768
_TEXT_BYTES = _TRACK_BYTES - _SIGN.size
_MAX_TRACKS = 128
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
        """Record the step that begins now, without an object in hand."""
        self._write(f"{self._name}\0{doing}", limit_s)

    def take(self, kind: str, value: KubeObject, place: str, limit_s: float = HANG_S) -> bool:
        """Record the object to work on next; False if it is left out because an earlier run hung on it."""
        meta = value.metadata
        uid, version = meta.uid, meta.resource_version
        if self._left_out and self._left_out.contains(place, uid, version):
            return False
        self._write(
            f"{self._name}\0{place}\0{kind}\0{meta.namespace}\0{meta.name}\0{uid}\0{version}",
            limit_s,
        )
        return True

    def touch(self) -> None:
        """Record that the current step still makes progress."""
        struct.pack_into("=d", self._buffer, self._offset, time.monotonic())

    def rest(self) -> None:
        """Record that the thread waits for work."""
        self.is_at_rest = True
        _SIGN.pack_into(self._buffer, self._offset, time.monotonic(), 0.0, 0)

    def __del__(self) -> None:
        """Rest when the thread has ended, because it can give no further sign."""
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
    """The file of this process, and the thread that owns each track."""

    buffer: mmap.mmap
    left_out: LeftOut
    owners: list[weakref.ref[threading.Thread]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def claim(self, thread: threading.Thread) -> Track | None:
        """Return a free track for a thread, preferably that of an ended thread; None when all are in use."""
        with self.lock:
            for number, owner in enumerate(self.owners):
                former = owner()
                if former is None or not former.is_alive():
                    self.owners[number] = weakref.ref(thread)
                    return self._track(number, thread)
            if len(self.owners) == _MAX_TRACKS:
                return None
            self.owners.append(weakref.ref(thread))
            track = self._track(len(self.owners) - 1, thread)
            struct.pack_into("=I", self.buffer, 12, len(self.owners))
            return track

    def _track(self, number: int, thread: threading.Thread) -> Track:
        track = Track(thread.name, self.buffer, _FIRST + number * _TRACK_BYTES, self.left_out)
        track.rest()
        return track


_writer: _Writer | None = None
_local = threading.local()


def start(process: str, home: Path) -> None:
    """Begin to write `<home>/run/<process>.beat`; call it first, in the main thread.

    A name set by the supervisor replaces `process`. `TRACEBACK_SIGNAL` makes the process write the
    stacks of all threads to its log, even during a C call.
    """
    global _writer, _local
    name = os.environ.get(PROCESS_VARIABLE) or process
    try:
        buffer = _new_file(beat_file(home, name))
    except OSError as error:
        # The process works without being watched, for example on a full disk.
        log.warning("no signs of life can be given: %s", error)
        return
    _writer = _Writer(buffer, LeftOut.of(home, name))
    _local = threading.local()
    # Under pytest standard error is not a file; then only the tracebacks are missing.
    with contextlib.suppress(ValueError, OSError, AttributeError):
        faulthandler.register(TRACEBACK_SIGNAL, all_threads=True)
    track().beat("starting", START_S)


def stop() -> None:
    """Stop writing the file, so that a process that is shutting down is not taken for one that hangs."""
    global _writer, _local
    if _writer is not None:
        struct.pack_into("=I", _writer.buffer, 12, 0)
    _writer, _local = None, threading.local()


def track() -> Track:
    """Return the track of the calling thread."""
    try:
        track_of_thread: Track = _local.track
    except AttributeError:
        thread = threading.current_thread()
        claimed = _writer.claim(thread) if _writer is not None else None
        track_of_thread = _local.track = claimed or Track("", bytearray(_TRACK_BYTES), 0, LeftOut())
    return track_of_thread


def beat_file(home: Path, process: str) -> Path:
    """Return the file in which a process writes its signs of life."""
    return home / FOLDER / f"{process}.beat"


def _new_file(file: Path) -> mmap.mmap:
    """Create the mapped file in one step, so that a reader never sees half of it."""
    file.parent.mkdir(mode=0o700, exist_ok=True)
    scratch = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        # Allocate real blocks: writing into a sparse file on a full disk would end the process with SIGBUS.
        os.posix_fallocate(descriptor, 0, _FIRST + _MAX_TRACKS * _TRACK_BYTES)
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
    held: HeldObject | None


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
    doing : the step that it had begun
    held : the object it hangs on; None if there is none, or if the process was stopped from outside
    """

    since: float
    doing: str
    held: HeldObject | None

    def step(self) -> str:
        """Return the step and its object."""
        return f"{self.doing}: {self.held.text()}" if self.held else self.doing

    def text(self, now: float) -> str:
        """Return a clause for logs and pages."""
        return f"no progress for {now - self.since:.0f} s ({self.step()})"


def read_beat(file: Path) -> Beat | None:
    """Return what a process wrote; None if there is no such file, or it has another format."""
    try:
        data = file.read_bytes()
    except OSError:
        return None
    if len(data) < _FIRST or not data.startswith(_MAGIC):
        return None
    _, pid, track_count, started_at = _HEADER.unpack_from(data)
    offsets = range(_FIRST, _FIRST + track_count * _TRACK_BYTES, _TRACK_BYTES)
    signs = tuple(_sign(data, offset) for offset in offsets if offset + _TRACK_BYTES <= len(data))
    return Beat(pid=pid, started_at=started_at, signs=signs)


def _sign(data: bytes, offset: int) -> Sign:
    moment, limit_s, length = _SIGN.unpack_from(data, offset)
    text_at = offset + _SIGN.size
    text = data[text_at : text_at + length].decode(errors="replace")
    thread, _, step = text.partition("\0")
    doing, *rest = step.split("\0")
    held = HeldObject(doing, *rest) if len(rest) == 5 else None
    return Sign(thread=thread, doing=doing, moment=moment, limit_s=limit_s, held=held)


def standstill(beat: Beat, now: float, *, awake_since: float = float("-inf")) -> Standstill | None:
    """Return the thread that has been silent for longest past its limit, or None.

    Parameters
    ----------
    awake_since : since when the caller itself has run without a pause, because during a pause of the whole
        machine no thread could give a sign
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


def _suspect(beat: Beat, late: list[Sign], longest: Sign) -> HeldObject | None:
    """Return the object on which the process hangs.

    If the main thread is late too, some thread keeps the interpreter lock, and it is the one that wrote last.
    Otherwise the other threads go on, and the one that has been silent for longest hangs.
    """
    if is_stopped(beat.pid):
        return None
    if all(sign.thread != MAIN for sign in late):
        return longest.held
    last = max(beat.signs, key=lambda sign: sign.moment)
    return last.held or longest.held


def is_stopped(pid: int) -> bool:
    """Return whether the process is stopped (SIGSTOP, a debugger); False where that cannot be read."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] in ("T", "t")
