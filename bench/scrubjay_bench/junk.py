"""A month of an agent's work, with recall in every turn: what of it becomes junk.

Theory of operation. Turns of real sessions are dealt over 30 days. Each goes in by the hook that a host would call, and
asks for what is to be handed over. What comes back is treated as hosts and agents do: the block stands before the next
prompt, in the tags that the host puts around it, and the agent says some of it in its own turn. Between them come the
turns that say nothing: heartbeats, "continue", status pings. In the end the store is audited.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from scrubjay import api
from scrubjay.api.caller import HOST, PERSON
from scrubjay.policy import DEFAULT, MemoryPolicy
from scrubjay.service.application import Application
from scrubjay.service.audit import Audit
from scrubjay_shared.clock import Millis

DAYS = 30
DAY_MS = 86_400_000
TURN_MS = 60_000
START = 1_767_225_600_000  # 2026-01-01
SEED = 7
NEAR_COSINE = 0.95  # as users of agent memories ask for it
TURN_CHARS = 4_000  # of one turn: what follows in a long one is code
EMPTY = (
    "continue",
    "Continue.",
    "HEARTBEAT",
    "HEARTBEAT_OK",
    "ok",
    "yes",
    "status?",
    "Status ping: all systems operational.",
    "Still working on it.",
    "go on",
    "No changes since the last check.",
    "ping",
)
"""Turns that say nothing; every third turn is one."""
EMPTY_EVERY = 3
SIZED_EVERY = 250
"""Turns between two looks at the size of the store."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: the project, the session, who speaks (`user`, `assistant`, `tool`), and the words."""

    project: str
    session: str
    role: str
    text: str


class _Row(msgspec.Struct):
    project: str
    session: str
    type: str
    text: str


def of_devmem(folder: Path, most: int) -> list[Turn]:
    """Return the turns of labelled coding sessions, in their order, at most so many."""
    rows = (msgspec.json.decode(line, type=_Row) for line in (folder / "sessions.jsonl").read_bytes().splitlines())
    role = {"user_message": "user", "assistant_message": "assistant", "tool_result": "tool"}
    turns = [Turn(row.project, row.session, role[row.type], row.text[:TURN_CHARS]) for row in rows if row.type in role]
    return turns[:most]


def of_locomo(file: Path, most: int) -> list[Turn]:
    """Return the turns of conversations between two people: the first is the person, the other the agent."""
    turns: list[Turn] = []
    for number, sample in enumerate(json.loads(file.read_bytes())):
        talk = sample["conversation"]
        for key in sorted((name for name in talk if name.split("_")[-1].isdigit() and "date" not in name), key=_number):
            for said in talk[key]:
                role = "user" if said["speaker"] == talk["speaker_a"] else "assistant"
                turns.append(Turn(f"talk-{number}", f"talk-{number}-{key}", role, said["text"]))
    return turns[:most]


def _number(key: str) -> int:
    return int(key.rpartition("_")[2])


def month(sources: Sequence[Sequence[Turn]]) -> list[Turn]:
    """Return the turns of all sources, session after session dealt in turn, with turns that say nothing among them."""
    draw = random.Random(SEED)
    sessions = [
        [list(turns) for _, turns in itertools.groupby(source, key=lambda turn: turn.session)] for source in sources
    ]
    dealt = [one for row in itertools.zip_longest(*sessions) for one in row if one is not None]
    found: list[Turn] = []
    for turn in itertools.chain.from_iterable(dealt):
        found.append(turn)
        if len(found) % EMPTY_EVERY == 0:
            found.append(Turn(turn.project, turn.session, draw.choice(("user", "assistant")), draw.choice(EMPTY)))
    return found


TOLD = (
    ("We decided to use SQLite in WAL mode for the cart store on the second disk.", "Where is the cart store kept?"),
    (
        "The gateway retries a payment at most once, because the bank counts each try.",
        "How often is a payment retried?",
    ),
    ("Releases go out every second Thursday from the branch release.", "When do releases go out?"),
    ("The importer reads ledgers of the bank as UTF-16 with a byte order mark.", "How are ledgers of the bank read?"),
)
"""What a person says, and asks for in a later session: their agent is handed it, and says it again."""


NOTES = "@observe project"


def planted() -> list[Turn]:
    """Return a few turns in which an agent notes down what it was handed: of its other words nothing is learned."""
    first = [Turn("shop", f"told-{at}", "user", said) for at, (said, _) in enumerate(TOLD)]
    later = [
        Turn("shop", f"asked-{at}", role, text)
        for at, (_, asked) in enumerate(TOLD)
        for role, text in (("assistant", "I look at it first."), ("user", asked), ("assistant", NOTES))
    ]
    return [*first, *later]


def comparing(policy: MemoryPolicy, *, subtracts: bool) -> MemoryPolicy:
    """Return the policy; with `subtracts` false one by which nothing is taken for an echo."""
    share = policy.distill.echo_share if subtracts else 2.0  # no share of a whole is 2
    return replace(policy, distill=replace(policy.distill, echo_share=share))


async def echoes_of(service: Application, clock: Clock) -> int:
    """Live through what is planted, and return how much of what was learned tells it back, by the usual measure."""
    await lived(service, planted(), clock)
    looked = Audit(service.store, DEFAULT, surfacing=service.surfacing.stats)
    found = {one.kind: one.count for one in (await looked.audit(PERSON, api.Nothing())).findings}
    return found["echo"] + found["echoed_source"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Junk:
    """What a month left: counts, and the size of the store after so many turns, in bytes with its memories."""

    turns: int
    handed: int
    memories: int
    exact: int
    near: int
    near_by_meaning: int | None
    echoes: int
    echoed_sources: int
    junk: int
    sizes: tuple[tuple[int, int, int], ...]


NEAR_SHARE = 0.01  # near duplicates of all memories, at most: what the users of such memories ask for


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """How many planted echoes were learned: with the subtraction, and without it. See `comparing`."""

    with_subtraction: int
    without: int


def failures(found: Junk, control: Control) -> list[str]:
    """Return what is not as it should be, in words: nothing where all is."""
    near = found.near if found.near_by_meaning is None else found.near_by_meaning
    checks = {
        "there are exact duplicates": found.exact == 0,
        "there are too many near duplicates": near <= NEAR_SHARE * found.memories,
        "agents' echoes were learned": found.echoes + found.echoed_sources + control.with_subtraction == 0,
        "turns that say nothing were learned": found.junk == 0,
        "nothing was remembered, so nothing is shown": found.memories > 0 and found.handed > 0,
        "the planted echoes are not seen without the subtraction either": control.without > 0,
    }
    return [told for told, holds in checks.items() if not holds]


class Clock:
    """The time of the month. `at` is where it stands, UTC milliseconds."""

    def __init__(self) -> None:
        self.at = Millis(START)

    def __call__(self) -> Millis:
        """Return the time."""
        return self.at


async def lived(service: Application, turns: Sequence[Turn], clock: Clock) -> Junk:
    """Live through a month in a store that was opened with a clock, and return what it left."""
    handed, said, sizes = 0, "", []
    step = DAYS * DAY_MS // max(len(turns), 1)
    begun: set[str] = set()
    for number, turn in enumerate(turns):
        at = clock.at = Millis(START + number * step)
        if turn.session not in begun:
            begun.add(turn.session)
            start = {"hook_event_name": "SessionStart", "source": "startup"}
            said = await _hook(service, turn, start, at) or said
            handed += bool(said)
        for payload in _payloads(turn, number, said):
            block = await _hook(service, turn, payload, at)
            if payload["hook_event_name"] == "UserPromptSubmit":
                handed += bool(block)
                said = block or said
        if number % SIZED_EVERY == SIZED_EVERY - 1:
            await _settled(service)
            sizes.append((number + 1, service.store.path.stat().st_size, await _memories(service)))
    await _settled(service)
    audit: api.AuditResponse = await service.call(PERSON, "audit", api.Nothing())
    found = {one.kind: one.count for one in audit.findings}
    return Junk(
        turns=len(turns),
        handed=handed,
        memories=audit.memories,
        exact=found["exact_duplicate"],
        near=found["near_duplicate"],
        near_by_meaning=await near_by_meaning(service),
        echoes=found["echo"],
        echoed_sources=found["echoed_source"],
        junk=sum(count for kind, count in found.items() if kind.startswith("junk_")),
        sizes=(*sizes, (len(turns), service.store.path.stat().st_size, audit.memories)),
    )


def _payloads(turn: Turn, number: int, block: str) -> Iterator[dict[str, Any]]:
    """Yield what a host reports of a turn, with what was handed over before as hosts and agents give it back."""
    if turn.role == "user":
        before = f"<system-reminder>\nUserPromptSubmit hook additional context: {block}\n</system-reminder>\n\n"
        text = (before if block else "") + turn.text
        yield {"hook_event_name": "UserPromptSubmit", "prompt_id": f"p{number}", "prompt": text}
        return
    if turn.role == "tool":
        yield {
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": "cat log"},
            "tool_use_id": f"t{number}",
            "tool_response": {"stdout": turn.text, "stderr": ""},
        }
        return
    lines = [line.partition(") ")[2] for line in block.splitlines() if line.startswith("- [")]
    again = ""
    if lines and turn.text == NOTES:
        again = "".join(f"{NOTES}\n{line}\n\n" for line in lines)
    elif lines:
        line = lines[number % len(lines)]
        again = f"As I recall: {line} " if number % 2 else f"{line}\n\n"
    yield {"hook_event_name": "Stop", "prompt_id": f"p{number}", "last_assistant_message": again + turn.text}


async def _hook(service: Application, turn: Turn, payload: dict[str, Any], at: Millis) -> str:
    told = {"session_id": turn.session, "cwd": f"/work/{turn.project}"} | payload
    request = api.HookRequest(host="claude-code", data=json.dumps(told).encode(), inject=True, sent=at)
    output = (await service.call(HOST, "hook", request)).output
    return str(json.loads(output)["hookSpecificOutput"]["additionalContext"]) if output else ""


async def _settled(service: Application) -> None:
    await service.call(PERSON, "settle", api.SettleRequest(timeout_ms=600_000))


async def _memories(service: Application) -> int:
    return await service.store.read(lambda q: q.audit.count())


async def near_by_meaning(service: Application) -> int | None:
    """Return how many memories are nearer to an earlier one of their scope than `NEAR_COSINE`; None without a model."""
    contents: dict[tuple[str, str | None], list[str]] = {}
    before: int | None = None
    while True:
        page, before = await service.store.read(lambda q, at=before: q.audit.memories(at, 500, chars=2_000))  # type: ignore[misc]
        for memory in page:
            contents.setdefault((memory.scope.value, memory.resource_id), []).append(memory.content)
        if before is None:
            break
    near = 0
    for texts in contents.values():
        meant = await service.meaning(texts)
        if meant is None:
            return None
        likeness = np.tril(meant[1] @ meant[1].T, k=-1)
        near += int((likeness.max(axis=1) >= NEAR_COSINE).sum()) if len(texts) > 1 else 0
    return near
