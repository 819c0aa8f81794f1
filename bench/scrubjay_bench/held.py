"""How long the daemon's event loop is held: a probe inside the daemon's own process, and the daemon with it.

Theory of operation. A callback in the loop asks to be called again after a millisecond. What it comes later than that,
the loop was held: by a callback that ran long, or by a thread that kept the interpreter's lock in one call into C. On
a busy machine it also comes late because every core is somebody else's. So of the delay is taken off what the kernel
says that the loop's thread waited for a core, and it counts for no more than what all threads of the process computed
meanwhile: nobody holds a lock without computing, unless he waits for a core himself.

A watching thread notes where all threads stand while the loop is late, to name who held it. It needs the interpreter's
lock for that, and gets it from whoever held it: where that one stands then is where he held it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from scrubjay.daemon import __main__ as daemon

TICK_SECONDS = 0.001
NOTED_NS = 2_000_000  # delays below it are what a timer always has
LATE_NS = 12_000_000  # from here on the watching thread looks who holds the loop
LOOK_SECONDS = 0.004  # below the 5 ms after which Python code gives up the interpreter's lock
MAX_LOOKS = 200  # in one delay: enough to tell
FRAMES = 3
IDLE = frozenset({"wait", "get", "select", "_worker", "_connection_worker_thread", "accept"})
"""Functions in which a thread waits: it holds nothing. Nor does one that lets a model compute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """One time that the loop was held, in milliseconds, `at` in nanoseconds of the monotonic clock.

    `late` by the clock; `held` what is left of it without waiting for a core; `own` the processor time of the loop's
    thread in it. `where` is where the thread that held it stood, innermost last.
    """

    at: int
    late: float
    held: float
    own: float
    where: str = ""


class Probe:
    """Ticks in the loop that is running, and writes down each delay, a JSON object a line."""

    def __init__(self, path: Path) -> None:
        """Delays go into the file at `path`."""
        self._path = path
        self._looks: list[Mapping[int, str]] = []
        self._last = 0
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin. Call it in the loop's thread."""
        self._loop = asyncio.get_running_loop()
        self._file = self._path.open("w", buffering=1, encoding="utf-8")
        self._thread = threading.get_ident()
        scheduling = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        self._scheduling = os.open(scheduling, os.O_RDONLY) if scheduling.exists() else None
        self._note()
        threading.Thread(target=self._look, name="probe", daemon=True).start()
        self._loop.call_later(TICK_SECONDS, self._tick)

    def stop(self) -> None:
        """End, and close the file."""
        self._stopped.set()
        self._file.close()
        if self._scheduling is not None:
            os.close(self._scheduling)

    def _waited(self) -> int:
        """Return the nanoseconds that the loop's thread has waited for a core; 0 where the kernel does not say."""
        return 0 if self._scheduling is None else int(os.pread(self._scheduling, 128, 0).split()[1])

    def _note(self) -> None:
        self._before = (time.process_time_ns(), time.thread_time_ns(), self._waited())
        self._looks.clear()
        self._last = time.monotonic_ns()

    def _tick(self) -> None:
        if self._stopped.is_set():
            return
        now = time.monotonic_ns()
        late = now - self._last - int(TICK_SECONDS * 1e9)
        if late >= NOTED_NS:
            computed, own, waited = (
                new - old
                for new, old in zip(
                    (time.process_time_ns(), time.thread_time_ns(), self._waited()), self._before, strict=True
                )
            )
            held = max(min(late - waited, computed), 0)
            if late >= LATE_NS:
                self._note_places()  # whoever gave the lock back to us stands where he had it
            where = self._culprit(own >= held / 2)
            delay = Delay(at=now, late=late / 1e6, held=held / 1e6, own=own / 1e6, where=where)
            self._file.write(json.dumps(asdict(delay)) + "\n")
        self._note()
        self._loop.call_later(TICK_SECONDS, self._tick)

    def _culprit(self, own: bool) -> str:  # noqa: FBT001
        """Return the place that was seen most often, of the loop's thread or of the others."""
        counts: dict[str, int] = {}
        for look in self._looks:
            for thread, place in look.items():
                if (thread == self._thread) is own:
                    counts[place] = counts.get(place, 0) + 1
        return max(counts, key=lambda place: counts[place], default="")

    def _look(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            if time.monotonic_ns() - self._last > LATE_NS and len(self._looks) < MAX_LOOKS:
                self._note_places()

    def _note_places(self) -> None:
        me = threading.get_ident()
        frames = sys._current_frames()  # noqa: SLF001 - the only way to see other threads
        # Our own frame would refer to itself, and keep all others with what they work on until the collector looks.
        del frames[me]
        self._looks.append(
            {
                thread: _place(frame)
                for thread, frame in frames.items()
                if frame.f_code.co_name not in IDLE and "onnxruntime" not in frame.f_code.co_filename
            }
        )


def _place(frame: FrameType) -> str:
    """Return where a thread stands: its innermost functions that are ours, and the very innermost."""
    found = [
        f"{Path(one.filename).stem}.{one.name}:{one.lineno}"
        for one in traceback.extract_stack(frame)
        if "scrubjay" in one.filename and "scrubjay_bench" not in one.filename
    ]
    inner = f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}:{frame.f_lineno}"
    return " > ".join(found[-FRAMES:] if found[-1:] == [inner] else [*found[-FRAMES:], inner])


def delays(path: Path) -> list[Delay]:
    """Return what a probe has written so far."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(Delay(**json.loads(line)))
        except ValueError:  # the last line is still being written
            break
    return found


@contextmanager
def probing(path: Path) -> Iterator[None]:
    """Probe the running loop for a while."""
    probe = Probe(path)
    probe.start()
    try:
        yield
    finally:
        probe.stop()


class _Probed(asyncio.DefaultEventLoopPolicy):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        loop = super().new_event_loop()
        loop.call_soon(Probe(self._path).start)
        return loop


def main() -> int:
    """Run the daemon with a probe that writes into the file named first."""
    asyncio.set_event_loop_policy(_Probed(Path(sys.argv.pop(1))))
    return daemon.main()


if __name__ == "__main__":
    sys.exit(main())
