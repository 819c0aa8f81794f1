"""Running rounds from the command line: one with a progress bar, or round after round."""

from __future__ import annotations

import sys
import threading
import time
from functools import partial
from typing import Any

from rich.text import Text

from scrubjay.cli import render
from scrubjay_shared.errors import (
    CorruptError,
    UnavailableError,
)
from scrubjay_sync.api.identity import Nothing
from scrubjay_sync.api.rounds import SnapshotResponse, SyncRequest, SyncResponse
from scrubjay_sync.cli.command import Command
from scrubjay_sync.cli.rendering import fault_lines, identity_line, renamed_lines
from scrubjay_sync.policy import SYNC
from scrubjay_sync.transport import DaemonTransport, Transport, connect

POLL_S = 0.3
"""Between two looks at how far a round is."""


def run_round(command: Command, transport: Transport) -> SyncResponse:
    """Run a round, with a bar for its long steps."""
    answer: SyncResponse = _run(command, transport, "sync", SyncRequest())
    return answer


def snapshot(command: Command) -> None:
    """Make a snapshot of what this device holds, and send it."""
    with connect(command.chosen) as transport:
        answer: SnapshotResponse = _run(command, transport, "snapshot", Nothing())
    command.out.answer(
        answer,
        lambda: Text(
            f"a snapshot of {render.words.counted(answer.ops, 'change')} stands at the server"
            f" ({answer.sent} of {render.words.counted(answer.chunks, 'object')} were new)\n{identity_line(answer.who)}"
        ),
    )


def _run(command: Command, transport: Transport, operation: str, request: Any) -> Any:
    done: list[Any] = []

    def run() -> None:
        try:
            done.append(transport.call(operation, request))
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits for it
            done.append(error)

    worker = threading.Thread(target=run, name="scrubjay-sync", daemon=True)
    worker.start()
    with command.out.progress() as bar:
        task = bar.add_task("sync", total=None)
        while worker.is_alive():
            worker.join(POLL_S)
            if worker.is_alive() and not command.out.hushed:
                step = transport.call("progress", Nothing())
                bar.update(task, description=step.step or "sync", completed=step.done, total=step.total or None)
    (result,) = done
    if isinstance(result, BaseException):
        raise result
    return result


def first_round(command: Command, transport: Transport) -> None:
    """Sync once, and say who does it from now on. The login stands, whatever becomes of it."""
    try:
        run_round(command, transport)
        if not isinstance(transport, DaemonTransport) and not command.out.json:
            command.out.remark(
                "no daemon runs here: scrubjay daemon start keeps this machine in step, scrubjay sync does one round"
            )
    except (UnavailableError, CorruptError) as error:
        command.out.remark(f"you are logged in; the first sync failed: {error.message}\nscrubjay sync tries again")


def watch(command: Command, transport: Transport) -> int:
    """Sync until somebody has enough. What passes by itself (no network) is waited out."""
    command.out.remark("syncing until Ctrl-C")
    while True:
        try:
            answer = transport.call("sync", SyncRequest(wait_s=SYNC.wait_s))
        except UnavailableError as error:
            pause_s = max(SYNC.backoff_ms / 1000, error.retry_after)
            command.out.remark(f"{error.message}; trying again in {pause_s:.0f} s")
            time.sleep(pause_s)
            continue
        if answer.ops_sent or answer.ops_received or answer.faults:
            command.out.answer(answer, partial(show_round, answer))
            sys.stdout.flush()


def show_round(answer: SyncResponse) -> Text:
    """Return what a round did, as lines."""
    parts = [
        "in sync" if answer.synced else "not in sync yet",
        f"sent {render.words.counted(answer.ops_sent, 'change')}",
        f"received {render.words.counted(answer.ops_received, 'change')}",
    ]
    if answer.conflicts:
        parts.append(f"{render.words.counted(answer.conflicts, 'conflict')} (scrubjay conflicts)")
    if answer.healed:
        parts.append(f"gave {render.words.counted(answer.healed, 'object')} back to the server")
    if answer.reincarnated:
        parts.append("this store is a new device now, because a copy of it wrote under the old id")
    lines = [
        ", ".join(parts),
        *fault_lines(answer.faults, answer.who.name),
        *renamed_lines(answer.renamed),
        identity_line(answer.who),
    ]
    return Text("\n".join(lines))
