"""Group commit on a real SQLite file: what shares a transaction, what a failure costs, and what follows the commit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scrubjay_io.group_commit import GroupCommit, Joined, Owner
from scrubjay_io.sqlite import ERRORS, Connection, driver
from scrubjay_shared.errors import CorruptError, InvalidError, ScrubjayError, UnavailableError

pytestmark = pytest.mark.anyio


class Counts:
    """An owner that keeps a number in memory which follows the transaction, and what was committed."""

    def __init__(self) -> None:
        self.number = 0
        self.groups: list[list[Any]] = []

    def restore(self, saved: int) -> None:
        self.number = saved

    def owner(self) -> Owner:
        return Owner(
            translate=lambda error: CorruptError("damaged", hint="") if isinstance(error, ERRORS) else error,
            closed=lambda: UnavailableError("closed", hint=""),
            stopped=lambda error: UnavailableError(f"stopped: {type(error).__name__}", hint=""),
            save=lambda: self.number,
            restore=self.restore,
            committed=self.groups.append,
        )

    def insert(self, text: str, *, fails: Exception | None = None) -> Any:
        def work(connection: Any) -> str:
            self.number += 1
            connection.execute("insert into note values (?)", (text,))
            if fails is not None:
                raise fails
            return text

        return work


@asynccontextmanager
async def writer(path: Path, counts: Counts, *, limit: int = 8) -> AsyncIterator[GroupCommit]:
    connection = Connection(lambda: driver.connect(str(path), isolation_level=None), 64)
    await connection
    await connection.call(lambda raw: raw.execute("create table if not exists note (t text primary key)"))
    made = GroupCommit(connection.call, counts.owner(), limit=limit, name="test-writer")
    try:
        yield made
    finally:
        await made.close()
        await connection.close()


async def test_only_what_is_regained_by_itself_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    said: list[str] = []
    connection = Connection(lambda: driver.connect(str(tmp_path / "s.db"), isolation_level=None), 64)
    await connection
    await connection.call(lambda raw: raw.execute("create table note (t text primary key)"))
    await connection.call(lambda raw: raw.execute("pragma synchronous = full"))
    counts = Counts()
    made = GroupCommit(connection.call, counts.owner(), limit=8, name="test-writer")

    def level(raw: Any) -> str:
        return f"{raw.execute('pragma synchronous').fetchone()[0]}"

    def work(text: str) -> Any:
        def noted(raw: Any) -> None:
            raw.execute("insert into note values (?)", (text,))
            said.append(f"{text} {level(raw)}")

        return noted

    def broken(_: Any) -> None:
        raise InvalidError("no", hint="")

    await made.submit(work("regained"), regained=True)
    with pytest.raises(InvalidError):
        await made.submit(broken, regained=True)
    await asyncio.gather(made.submit(work("regained beside"), regained=True), made.submit(work("durable")))
    after = await connection.call(level)
    await made.close()
    await connection.close()

    assert said == ["regained 1", "regained beside 2", "durable 2"]  # 1: normal, 2: full
    assert after == "2"


def notes(path: Path) -> list[str]:
    connection = driver.connect(str(path))
    try:
        return [row[0] for row in connection.execute("select t from note order by t")]
    finally:
        connection.close()


async def test_writes_that_wait_together_share_transactions_of_the_limit_and_keep_their_order(tmp_path: Path) -> None:
    counts = Counts()
    async with writer(tmp_path / "f", counts, limit=4) as group:
        results = await asyncio.gather(*(group.submit(counts.insert(str(n))) for n in range(6)))

    assert results == list("012345")
    assert counts.groups == [list("0123"), list("45")]


@pytest.mark.parametrize("beside", [0, 3], ids=["alone", "among others"])
async def test_a_write_that_fails_leaves_nothing_and_takes_nobody_elses_with_it(tmp_path: Path, beside: int) -> None:
    counts = Counts()
    fails = InvalidError("no", hint="")
    async with writer(tmp_path / "f", counts) as group:
        outcomes = await asyncio.gather(
            group.submit(counts.insert("lost", fails=fails)),
            *(group.submit(counts.insert(str(n))) for n in range(beside)),
            return_exceptions=True,
        )

    kept = [str(n) for n in range(beside)]
    assert outcomes == [fails, *kept]
    assert notes(tmp_path / "f") == kept
    assert (counts.number, [one for told in counts.groups for one in told]) == (beside, kept)


async def test_a_driver_error_reaches_its_submitter_in_the_owners_words(tmp_path: Path) -> None:
    counts = Counts()
    async with writer(tmp_path / "f", counts) as group:
        await group.submit(counts.insert("twice"))
        with pytest.raises(CorruptError, match="damaged"):
            await group.submit(counts.insert("twice"))


async def test_when_a_group_cannot_be_written_each_write_of_it_is_tried_alone(tmp_path: Path) -> None:
    counts = Counts()

    def rolls_all_back(connection: Any) -> None:  # as SQLite does by itself on a full disk
        connection.execute("rollback")
        raise driver.OperationalError("database or disk is full")

    async with writer(tmp_path / "f", counts) as group:
        outcomes = await asyncio.gather(
            group.submit(counts.insert("before")),
            group.submit(rolls_all_back),
            group.submit(counts.insert("after")),
            return_exceptions=True,
        )

    assert (outcomes[0], outcomes[2]) == ("before", "after")
    assert isinstance(outcomes[1], CorruptError)
    assert notes(tmp_path / "f") == ["after", "before"]
    assert counts.number == 2


async def test_a_statement_outside_runs_between_two_groups(tmp_path: Path) -> None:
    counts = Counts()
    async with writer(tmp_path / "f", counts) as group:
        _, rows, _ = await asyncio.gather(
            group.submit(counts.insert("1")),
            group.outside("select count(*) from note"),
            group.submit(counts.insert("2")),
        )
        with pytest.raises(CorruptError):
            await group.outside("vacuum into 'nowhere/at/all'")

    assert rows == [(1,)]
    assert counts.groups == [["1"], ["2"]]


async def test_an_owner_that_cannot_follow_a_commit_costs_nobody_an_answer(tmp_path: Path) -> None:
    counts = Counts()

    class Refusing(list[list[Any]]):
        def append(self, _: list[Any]) -> None:
            raise KeyError

    counts.groups = Refusing()
    async with writer(tmp_path / "f", counts) as group:
        assert await group.submit(counts.insert("1")) == "1"
        assert await group.submit(counts.insert("2")) == "2"


async def test_after_the_end_a_write_is_refused_and_what_was_submitted_before_is_written(tmp_path: Path) -> None:
    counts = Counts()
    async with writer(tmp_path / "f", counts) as group:
        under_way = asyncio.gather(*(group.submit(counts.insert(str(n))) for n in range(3)))
        await asyncio.sleep(0)
        await group.close()
        with pytest.raises(UnavailableError, match="closed"):
            await group.submit(counts.insert("late"))

    assert await under_way == ["0", "1", "2"]
    assert group.failure is None


async def test_a_transaction_that_can_be_neither_committed_nor_undone_stops_the_writer_for_good(tmp_path: Path) -> None:
    counts = Counts()
    async with writer(tmp_path / "f", counts) as group:
        outcomes = await asyncio.gather(
            group.submit(lambda connection: connection.close()),
            *(group.submit(counts.insert(str(n))) for n in range(20)),
            return_exceptions=True,
        )
        with pytest.raises(UnavailableError, match="stopped: ProgrammingError"):
            await group.submit(counts.insert("later"))

    assert {type(one) for one in outcomes} == {UnavailableError}
    assert isinstance(group.failure, ScrubjayError)


class Texts:
    """Inserts texts, and remembers how many each call was given."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        self.calls: list[int] = []

    def insert(self, connection: Any, texts: Sequence[str]) -> list[str]:
        self.calls.append(len(texts))
        for text in texts:
            self.counts.number += 1
            connection.execute("insert into note values (?)", (text,))
        return [f"{text} of {len(texts)}" for text in texts]


async def test_writes_of_one_kind_that_stand_side_by_side_are_one_call_and_keep_their_order(tmp_path: Path) -> None:
    counts = Counts()
    texts = Texts(counts)
    async with writer(tmp_path / "f", counts) as group:
        results = await asyncio.gather(
            *(group.submit(Joined(texts.insert, text)) for text in "ab"),
            group.submit(counts.insert("c")),
            group.submit(Joined(texts.insert, "d")),
        )

    assert results == ["a of 2", "b of 2", "c", "d of 1"]
    assert texts.calls == [2, 1]
    assert counts.groups == [results]


@pytest.mark.parametrize("beside", [[], ["x"]], ids=["a group of its own", "among other writes"])
async def test_where_a_joined_call_fails_each_of_it_is_tried_alone(tmp_path: Path, beside: list[str]) -> None:
    counts = Counts()
    texts = Texts(counts)
    async with writer(tmp_path / "f", counts) as group:
        outcomes = await asyncio.gather(
            *(group.submit(Joined(texts.insert, text)) for text in ("a", "b", "a", "c")),
            *(group.submit(counts.insert(text)) for text in beside),
            return_exceptions=True,
        )

    assert [outcomes[0], outcomes[1], outcomes[3]] == ["a of 1", "b of 1", "c of 1"]
    assert isinstance(outcomes[2], CorruptError)
    assert notes(tmp_path / "f") == ["a", "b", "c", *beside]
    assert counts.number == 3 + len(beside)


async def test_a_joined_call_without_a_result_for_each_writes_nothing(tmp_path: Path) -> None:
    counts = Counts()

    def forgets(connection: Any, texts: Sequence[str]) -> list[str]:
        connection.execute("insert into note values (?)", (texts[0],))
        return []

    async with writer(tmp_path / "f", counts) as group:
        outcomes = await asyncio.gather(*(group.submit(Joined(forgets, text)) for text in "ab"), return_exceptions=True)

    assert not [outcome for outcome in outcomes if not isinstance(outcome, Exception)]
    assert notes(tmp_path / "f") == []


async def test_a_caller_that_goes_away_does_not_take_its_write_back(tmp_path: Path) -> None:
    counts = Counts()
    async with writer(tmp_path / "f", counts) as group:
        gone = asyncio.create_task(group.submit(counts.insert("gone")))
        stays = asyncio.create_task(group.submit(counts.insert("stays")))
        await asyncio.sleep(0)
        gone.cancel()
        assert await stays == "stays"

    assert gone.cancelled()
    assert notes(tmp_path / "f") == ["gone", "stays"]


async def test_what_cannot_be_confirmed_after_the_commit_is_told_to_each_of_the_group(tmp_path: Path) -> None:
    counts = Counts()

    def confirm() -> None:
        raise UnavailableError("moved", hint="")

    connection = Connection(lambda: driver.connect(str(tmp_path / "f"), isolation_level=None), 64)
    await connection
    await connection.call(lambda raw: raw.execute("create table note (t text primary key)"))
    group = GroupCommit(connection.call, replace(counts.owner(), confirm=confirm), limit=8, name="test-writer")
    outcomes = await asyncio.gather(*(group.submit(counts.insert(text)) for text in "ab"), return_exceptions=True)
    await group.close()
    await connection.close()

    assert [str(outcome) for outcome in outcomes] == ["moved", "moved"]
    assert outcomes[0] is not outcomes[1]
    assert counts.groups == [["a", "b"]]
