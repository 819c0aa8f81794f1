"""`scrubjay restore`: put a backup in place of the store."""

from __future__ import annotations

import asyncio
import os
import time
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay.cli import invocation, render
from scrubjay.cli.always_loaded import always_loaded
from scrubjay.cli.output import Output
from scrubjay.cli.reports import RestoreReport
from scrubjay_shared import ops
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import CorruptError

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take what to restore from."""
    parser.add_argument("file", metavar="FILE", help="a file that `scrubjay backup` wrote")
    parser.add_argument(
        "--with-forgotten", action="store_true", help="also bring back what was forgotten after the backup was made"
    )


def run(line: Namespace) -> None:
    """Put a backup in place of the store; the old file is kept beside it."""
    from scrubjay.store import migrations  # noqa: PLC0415  # numpy and all: the other commands may find a daemon
    from scrubjay.store import restore as put_back  # noqa: PLC0415

    out = Output.of(line)
    target = invocation.settings_of(line).store_path
    source = Path(line.file).expanduser().absolute()
    kept = put_back(target, source, migrations())
    forgotten = None if kept is None or line.with_forgotten else _forgotten_again(target, kept, out)
    with invocation.store(line) as store:
        loaded = always_loaded(store)
    report = RestoreReport(
        file=str(target),
        source=str(source),
        kept=None if kept is None else str(kept),
        always_loaded=loaded,
        forgotten=forgotten,
    )
    out.answer(report, lambda: render.transfer.restored(report))


def _forgotten_again(target: Path, kept: Path, out: Output) -> int | None:
    """Forget in the restored store what the old one forgot since. Returns how much, None where it cannot be read."""
    from scrubjay.service.erasing import erase_again  # noqa: PLC0415  # as above
    from scrubjay.store import Cause, Store, forgotten_since  # noqa: PLC0415

    async def work() -> int:
        store = await Store.open(target, now=lambda: Millis(time.time_ns() // 1_000_000), entropy=os.urandom)
        try:
            erasures = forgotten_since(kept, target)
            # Under the causes that they had, which say whether it was an agent that forgot.
            for known, part in groupby(erasures, ops.cause_of):
                cause = Cause(id=known, label="restore") if known else store.new_cause("forget", label="restore")
                await store.write(partial(erase_again, erasures=list(part)), cause=cause)
            gone = [one for one in erasures if one.type == ops.OpType.FORGET and ops.new_key_of(one) is None]
            return len({ops.entity_of(one) for one in gone if not ops.lifts(one)})
        finally:
            await store.close()

    try:
        return asyncio.run(work())
    except CorruptError as error:
        out.remark(f"the old store cannot be read, so what it forgot is not known: {error.message}")
        return None
