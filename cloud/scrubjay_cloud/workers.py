"""Several processes that serve one port, over PostgreSQL: Python runs on one core a process.

The processes share nothing but the database and the port; the kernel spreads connections over them. One that ends is
started again; one that cannot start ends them all, with its own exit code, so that whoever started the service is told.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from types import FrameType

from scrubjay_cloud.policy import OPERATIONS
from scrubjay_cloud.settings import Settings
from scrubjay_shared.errors import InvalidError

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
"""How often signals are looked for: Python goes on waiting after one."""


def supervised(settings: Settings, serve: Callable[[Settings], None]) -> int:
    """Run `settings.workers` processes until a signal comes; return the exit code.

    `serve` is the service in one process, a function that another interpreter can import. Worker number n has the
    metrics port n above the one that is set. Raises InvalidError where there is no PostgreSQL to share.
    """
    if not settings.database_url:
        raise InvalidError(
            "several workers need PostgreSQL: a SQLite file has one writer",
            hint="set DATABASE_URL, or leave the workers at 1",
        )
    if settings.port == 0:
        raise InvalidError("several workers share a port, and it must be named", hint="give --port, 8377 for example")
    spawn = multiprocessing.get_context("spawn")
    stopping: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        stopping.append(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)

    def started(place: int) -> BaseProcess:
        metrics = settings.metrics_port + place if settings.metrics_port else 0
        process = spawn.Process(target=serve, args=(replace(settings, metrics_port=metrics),), name=f"worker-{place}")
        process.start()
        return process

    running = [(started(place), time.monotonic()) for place in range(settings.workers)]
    while not stopping:
        wait([process.sentinel for process, _ in running], LOOK_SECONDS)
        for place, (process, since) in enumerate(running):
            if process.is_alive() or stopping:
                continue
            code = process.exitcode or 0  # below 0: a signal ended it, which says nothing of its start
            if time.monotonic() - since < OPERATIONS.worker_start_s and code > 0:
                log.error("worker could not start place=%d code=%s", place, code)
                return _ended(running, code)
            log.error("worker ended and is started again place=%d code=%s", place, code)
            running[place] = (started(place), time.monotonic())
    return _ended(running, 0)


def end_with_parent() -> None:
    """Have this process end in order when the one that started it is gone, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="cloud-parent", daemon=True).start()


def _ended(running: list[tuple[BaseProcess, float]], code: int) -> int:
    """End all processes in order, each with the time it needs for what is under way; return the exit code."""
    for process, _ in running:
        process.terminate()
    until = time.monotonic() + OPERATIONS.drain_s + OPERATIONS.worker_start_s
    for process, _ in running:
        process.join(max(0.0, until - time.monotonic()))
        if process.is_alive():
            log.error("worker did not end in time name=%s", process.name)
            process.kill()
            process.join()
    return code
