"""Whatever people write into the files while the store changes: both converge, and no word of theirs is lost."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quick_disk import quick_folder
from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.policy import VaultPolicy
from scrubjay.service.application import Application
from scrubjay.vault.layout import VaultFile, file_of, resource_of
from scrubjay.vault.markdown import parse
from scrubjay.vault.matching import Known, digest
from scrubjay.vault.merge import Stored, merged
from scrubjay.vault.working import read as read_working
from scrubjay_shared.records import MemoryDraft, MemoryType, Scope

FILES = ("episodic", "semantic", "self", "social", "working")
TYPES = {
    "episodic": MemoryType.DAILY,
    "semantic": MemoryType.BELIEF,
    "self": MemoryType.SELF,
    "social": MemoryType.SOCIAL,
}
SECTIONS = ("Food", "Kibo", "Tick 1")
numbers = itertools.count()


@dataclass
class World:
    """One agent's vault in a store that others share, and the words that a merge has seen in its files."""

    service: Application
    folder: Path
    agent: str
    seen: set[str] = field(default_factory=set)

    @property
    def resource(self) -> str:
        return resource_of(self.agent)

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.md"

    def text(self, name: str) -> str:
        path = self.path(name)
        return path.read_bytes().decode() if path.exists() else ""

    def kept(self, name: str) -> set[str]:
        """Return the words that the file keeps beside the store's."""
        document = read_working(self.text(name)) if name == "working" else parse(self.text(name))
        return {word for entry in document.entries if entry.is_kept for word in words(entry.text)}

    def write(self, name: str, text: str) -> None:
        """Save a file as editors do: over a new one. What a person takes out of a conflict is theirs to drop."""
        before = self.kept(name)
        part = self.folder / f".{name}.swp"
        part.write_bytes(text.encode())
        part.replace(self.path(name))
        self.seen -= before - words(text)

    async def sync(self, **how: Any) -> None:
        for name in FILES:
            if name != "working" or len(self.text(name)) < 1_200:  # above 500 tokens it is not read
                self.seen |= words(self.text(name))
        await self.service.call(PERSON, "vault_sync", api.VaultSyncRequest(agent=self.agent, **how))

    async def memories(self) -> list[Any]:
        return await self.service.store.read(lambda q: q.vaults.memories(self.resource))

    async def state(self) -> tuple[Any, ...]:
        shown = [(one.id, one.content, one.topic, one.archived_at) for one in await self.memories()]
        return (*[self.text(name) for name in FILES], *shown)


def words(text: str) -> set[str]:
    """Return the words of a text that only one person's edit or one change of the store ever wrote."""
    return {word for word in text.split() if word.startswith("said") and word[4:].isdigit()}


def said() -> str:
    return f"berries grow near the river said{next(numbers)}"


async def person(world: World, what: str, name: str, where: int) -> None:
    """Edit a file as a person does."""
    if what == "away":
        world.seen -= world.kept(name)
        world.path(name).unlink(missing_ok=True)
        return
    text = world.text(name)
    ending = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(ending)
    if what == "ends":
        ending = "\r\n" if ending == "\n" else "\n"
    edit(lines, what, where)
    world.write(name, ending.join(lines))


def edit(lines: list[str], what: str, where: int) -> None:
    """Change the lines of a file."""
    place = where % (len(lines) + 1)
    if what in {"line", "heading", "open"}:
        line = f"{('- ', '', '1. ', '> ', '    ')[where % 5]}{said()}"
        lines.insert(place, {"line": line, "heading": f"## {SECTIONS[where % 3]}"}.get(what, "```"))
    elif what == "edit":
        at = next((n for n in range(place, len(lines)) if "river" in lines[n]), None)
        if at is not None:
            lines[at] = lines[at].replace("river", f"river {said().rsplit(maxsplit=1)[-1]}", 1)
    elif what in {"delete", "cut"}:
        lines[place : place + (1 if what == "delete" else 4)] = []
    elif what == "move" and len(lines) > 2:
        line = lines.pop(place % len(lines))
        lines.insert(where * 7 % len(lines), line)


async def store(world: World, what: str, name: str, where: int) -> None:
    """Change the store, as agents, jobs and other devices do."""
    if what == "add":
        draft = MemoryDraft(
            content=f"the store heard{next(numbers)} of a hill",
            type=TYPES.get(name, MemoryType.DAILY),
            scope=Scope.SESSION if name == "working" else Scope.PROJECT,
            resource_id=world.resource,
            topic=None if name == "working" else (*SECTIONS, None, "# odd *topic* ##")[where % 5],
        )
        await world.service.call(PERSON, "add", draft)
        return
    if what == "undo":
        history = await world.service.call(PERSON, "history", api.HistoryRequest(kind="vault", limit=1))
        for cause in history.causes:
            if cause.label.startswith(f"{world.agent} "):
                await world.service.call(PERSON, "undo", api.UndoRequest(cause=cause.id))
        return
    held = await world.memories()
    if held:
        ref = held[where % len(held)].id
        change: dict[str, Any] = {
            "update": {
                "content": ("the store\n\n    knows{} better", "- heard{}", "# heard{}")[where % 3].format(where)
            },
            "archive": {"archived": True},
            "topic": {"topic": SECTIONS[where % 3]},
            "type": {"type": TYPES[FILES[where % 4]]},
        }[what]
        await world.service.call(PERSON, "update", api.UpdateRequest(ref=ref, **change))


async def both(world: World, name: str, where: int) -> None:
    """Edit one entry in the file and in the store, neither having seen the other."""
    held = [one for one in await world.memories() if one.content in world.text(name) and "river" in one.content]
    if held:
        one = held[where % len(held)]
        change = api.UpdateRequest(ref=one.id, content=f"the store knows better{where}")
        await world.service.call(PERSON, "update", change)
        world.write(name, world.text(name).replace(one.content, one.content.replace("river", said()), 1))


PERSON_DOES = ("line", "line", "line", "heading", "edit", "edit", "delete", "cut", "move", "open", "ends", "away")
STORE_DOES = ("add", "add", "update", "update", "archive", "topic", "type", "undo")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("person"), st.sampled_from(PERSON_DOES), st.sampled_from(FILES), st.integers(0, 40)),
        st.tuples(st.just("store"), st.sampled_from(STORE_DOES), st.sampled_from(FILES), st.integers(0, 40)),
        st.tuples(st.just("both"), st.just(""), st.sampled_from(FILES), st.integers(0, 40)),
        st.tuples(st.just("sync"), st.sampled_from(("", "", "confirm", "put_back")), st.just(""), st.just(0)),
    ),
    min_size=4,
    max_size=22,
)


async def interleaved(world: World, steps: list[tuple[str, str, str, int]]) -> None:
    await world.service.call(PERSON, "vault_init", api.VaultInitRequest(agent=world.agent, folder=str(world.folder)))
    for who, what, name, where in steps:
        if who == "sync":
            await world.sync(**({what: True} if what else {}))
        elif who == "both":
            await world.sync()
            await both(world, name, where)
        else:
            await (person if who == "person" else store)(world, what, name, where)
    await world.sync()
    for name in FILES:
        await both(world, name, 0)
    await world.sync()
    await world.sync()
    agreed = await world.state()
    await world.sync()
    assert await world.state() == agreed, "once both agree, nothing changes any more"
    await no_word_is_lost(world)
    await both_say_the_same(world)


async def no_word_is_lost(world: World) -> None:
    here = set[str]()
    for name in FILES:
        here |= words(world.text(name))
    for memory in await world.memories():
        here |= words(memory.content)
    ids = [memory.id for memory in await world.memories()]
    logs = await world.service.store.read(lambda q: q.ops.of_entities(ids))
    for log in logs.values():
        for op in log:
            here |= words(" ".join(str(value) for value in op.body.values()).replace("'", " ").replace(",", " "))
            here |= {word for word in world.seen if word in repr(op.body)}
    assert world.seen <= here, f"lost: {sorted(world.seen - here)}"


async def both_say_the_same(world: World) -> None:
    answer = await world.service.call(PERSON, "vaults", api.VaultsRequest(agent=world.agent))
    states = {one.file.removesuffix(".md"): one for one in answer.vaults[0].files}
    current = [one for one in await world.memories() if one.archived_at is None and one.superseded_by is None]
    for name in FILES:
        if states[name].problem or states[name].refused:
            continue
        document = read_working(world.text(name)) if name == "working" else parse(world.text(name))
        found = [entry.text for entry in document.entries if not entry.is_kept]
        held = [one.content for one in current if file_of(one) is VaultFile(name)]
        assert sorted(text.split() for text in found) == sorted(text.split() for text in held), name


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[asyncio.AbstractEventLoop, Application, Path]]:
    """One service for all examples: each has a vault of its own in it."""
    with tempfile.TemporaryDirectory(dir=quick_folder()) as place, asyncio.Runner() as runner:
        path = Path(place) / "store" / "memory.db"
        service = runner.run(Application.open(path, models_dir=path.parent, model="none"))
        yield runner, service, Path(place)  # type: ignore[misc]
        runner.run(service.close())


def tried(shared: Any, steps: list[tuple[str, str, str, int]]) -> None:
    runner, service, place = shared
    agent = f"agent{next(numbers)}"
    runner.run(interleaved(World(service=service, folder=place / agent, agent=agent), steps))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_files_and_store_converge_and_no_word_is_lost(shared: Any, steps: list[tuple[str, str, str, int]]) -> None:
    tried(shared, steps)


@pytest.mark.slow
@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=STEPS)
def test_500_interleavings_converge_and_no_word_is_lost(shared: Any, steps: list[tuple[str, str, str, int]]) -> None:
    tried(shared, steps)


def test_the_law_would_notice_a_lost_word() -> None:
    """The merge itself is asked: a text changed on both sides is kept, so it is in its plan."""
    known = Known(memory_id="m", section=digest(""), text=digest("a b c"), topic=digest(""), content=digest("a b c"))
    plan = merged([known], parse("- a b d\n").entries, {"m": Stored(content="a b e")}, VaultPolicy())
    assert plan.edits.kept == {0: "a b d"}
    assert plan.edits.replaced == {0: "a b e"}
