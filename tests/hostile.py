"""What a hostile file or device would send, drawn by a seed: secrets of every kind, in every field, by every way in.

For tests/test_funnel.py: `plant` gives a service one batch, `broken` says what of the law does not hold afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from claude_tree import BEGAN, Turn, Work, transcript
from planted_secrets import Planted, planted
from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.importers import export_format
from scrubjay.redaction import clean
from scrubjay.service.application import Application
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc, Millis, ulid, ulid_bytes, uuid7
from scrubjay_shared.errors import ScrubjayError
from scrubjay_shared.ops import Field, OpType
from scrubjay_shared.records import (
    TRUST_ORDER,
    Event,
    EventDraft,
    EventType,
    Grip,
    Kind,
    Layer,
    Memory,
    MemoryDraft,
    MemoryType,
    Role,
    Scope,
    Trust,
    content_hash,
)

NOW = 1_800_000_000_000
AGENT = Caller(principal=Principal.AGENT, agent="crow", session_id="noted")


def secrets(seed: int, count: int = 200) -> list[Planted]:
    """Draw secrets of many forms (tests/planted_secrets.py) that `redact` claims to find.

    What it does not claim to find is its own tests' matter, and one of under eight characters may stand anywhere.
    """
    found = (one for one in planted(seed, 2 * count) if len(one.secret) >= 8)
    known = (one for one in found if not any(needle in clean(one.text).text.encode() for needle in needles(one)))
    return list({one.secret: one for one in known}.values())[:count]


def needles(one: Planted) -> list[bytes]:
    """Return what must be in no file: the secret's first line; a private key's lines are the next ones."""
    return [one.secret.replace("\\n", "\n").split("\n")[0].encode()]


# --- what is sent ---------------------------------------------------------------------------------------------------------


class Hostile:
    """Draws batches for one service."""

    def __init__(self, seed: int, planted: list[Planted]) -> None:
        self.rng = Random(f"hostile {seed}")
        self.planted = planted
        # A heading and a quoted title are surroundings of their own: only what is known in them may stand in them.
        self.quoted = [
            one.text for one in planted if needles(one)[0] not in clean(f"title: {json.dumps(one.text)}").text.encode()
        ]
        self.titles = [one.text for one in planted if needles(one)[0] not in clean(f"# {one.text}").text.encode()]
        self.ids: list[str] = [self.fresh() for _ in range(20)]

    def fresh(self) -> str:
        return ulid(Millis(NOW + self.rng.randrange(1000)), self.rng.randbytes(10))

    def id(self) -> str:
        return self.rng.choice(self.ids) if self.rng.random() < 0.3 else self.fresh()

    def words(self, most: int = 6) -> str:
        said = [
            "ALWAYS run curl",
            "identity/name",
            "I prefer tea",
            "the beta is due",
            "x" * 300,
            "東京",
            "\ud83d",
            "a\nb",
        ]
        parts = [self.rng.choice(said) for _ in range(self.rng.randint(1, most))]
        if self.rng.random() >= 0.6:
            return " ".join(parts)
        # On lines of its own, as it was drawn: within a sentence nobody could know a line of a settings file.
        at = self.rng.randrange(len(parts) + 1)
        pieces = (" ".join(parts[:at]), self.rng.choice(self.planted).text, " ".join(parts[at:]))
        return "\n".join(piece for piece in pieces if piece)

    def short(self) -> str:
        return self.rng.choice(["name", "identity/human", "active/task", "note~2", self.rng.choice(self.planted).text])

    def json(self, depth: int = 2) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(self.rng.randrange(4)):
            key = self.rng.choice(["password", "note", "speaker", "source_key", "caption", self.short()])
            value: Any = self.rng.choice([self.words(2), 7, None, [self.words(2)], 1.5, True])
            found[key] = self.json(depth - 1) if depth and self.rng.random() < 0.3 else value
        if self.rng.random() < 0.2:  # by its member's name alone
            found["password"] = self.rng.choice(self.planted).secret
        return found

    def event(self) -> Event:
        return Event(
            id=self.id(),
            device=self.rng.randbytes(16).hex(),
            agent=self.short(),
            session_id=self.short(),
            type=self.rng.choice(list(EventType)),
            role=self.rng.choice(list(Role)),
            text=self.words(),
            ts=Millis(NOW + self.rng.randrange(1000)),
            dedupe_key=f"{self.fresh()}\n{self.words(2)}",
            project=self.rng.choice([None, self.short()]),
            utc_offset=self.rng.choice([0, 120, 5000]),
            trust=self.rng.choice(list(Trust)),
            metadata=self.json(),
        )

    def memory(self) -> Memory:
        content = self.words()
        return Memory(
            id=self.id(),
            content=content,
            kind=self.rng.choice(list(Kind)),
            type=self.rng.choice(list(MemoryType)),
            scope=self.rng.choice(list(Scope)),
            salience=self.rng.choice([0.5, 1, 7, -1]),
            created_at=Millis(NOW),
            updated_at=Millis(NOW),
            content_hash=content_hash(content),
            name=self.rng.choice([None, self.short(), f"{self.fresh()}\n{self.short()}"]),
            resource_id=self.rng.choice([None, self.short(), self.short()]),
            layer=self.rng.choice(list(Layer)),
            topic=self.rng.choice([None, self.short()]),
            trust=self.rng.choice(list(Trust)),
            superseded_by=self.rng.choice([None, self.id(), self.short()]),
            metadata=self.json(),
        )

    def grip(self, memory: str) -> Grip:
        return Grip(
            id=self.id(),
            memory_id=memory,
            event_id_start=self.id(),
            event_id_end=self.id(),
            span_start=0,
            span_end=self.rng.randrange(50),
            excerpt=self.words(2),
            source=self.short(),
            created_at=Millis(NOW),
        )

    def export(self) -> bytes:
        rows = [export_format.header("s", Millis(NOW), version=self.rng.choice([1, 2]))]
        for _ in range(self.rng.randint(1, 3)):
            event = self.event()
            stamp = export_format.Stamp(seq=self.rng.randint(1, 99), op_id=bytes(16), hlc=NOW << 16)
            rows.append(msgspec.json.encode({"event": _plain(event), "stamp": _plain(stamp)}) + b"\n")
            memory = self.memory()
            grips = tuple(self.grip(memory.id) for _ in range(self.rng.randrange(3)))
            kept = export_format.MemoryRecord(memory=memory, aliases=tuple(self.short() for _ in range(2)), grips=grips)
            rows.append(msgspec.json.encode({"memory": _plain(kept)}) + b"\n")
            seq, data = self.op()
            rows.append(
                export_format.line(export_format.OpRecord(device=self.rng.randbytes(16).hex(), seq=seq, data=data))
            )
        return b"".join(rows)

    def transcript(self) -> bytes:
        """A session as Claude Code writes it (tests/claude_tree.py), with hostile words, and some lines changed."""
        turns = [
            Turn(self.words(), self.words(), self.rng.choice(["", f"cat <<end\n{self.short()}\nend"]), self.words())
            for _ in range(self.rng.randint(1, 3))
        ]
        rows = list(transcript(f"{self.fresh()}\n{self.short()}", Work(self.short(), turns), BEGAN))
        for row in self.rng.sample(rows, k=len(rows) // 3):
            changes: list[dict[str, Any]] = [
                {"type": self.rng.choice(["system", "attachment", "summary", self.short()])},
                {"message": {"role": "user", "content": self.words()}, "uuid": self.short()},
                {"gitBranch": self.short(), "sessionId": self.short(), "timestamp": self.rng.choice([0, None, "soon"])},
                {"parentUuid": self.short(), "isCompactSummary": True},
                {"message": {"role": "assistant", "id": self.short(), "content": [{"text": [self.words()]}, 7]}},
            ]
            row.update(self.rng.choice(changes))
        return "\n".join(json.dumps(row) for row in rows).encode()

    def notes(self) -> bytes:
        title, alias = (json.dumps(self.rng.choice(["name", "note~2", *self.quoted])) for _ in range(2))
        front = f"---\ntitle: {title}\naliases: [{alias}]\ntrust: user\nlayer: identity\n---\n"
        titles = ["Tea", "東京", self.rng.choice(self.titles)]
        body = "\n\n".join(f"# {self.rng.choice(titles)}\n\n{self.words()}" for _ in range(2))
        return (self.rng.choice(["", front]) + body).encode("utf-8", "replace")

    def mcp(self) -> bytes:
        rows: list[dict[str, Any]] = [
            {"type": "entity", "name": self.short(), "entityType": self.words(1), "observations": [self.words()]},
            {"type": "relation", "from": self.short(), "to": self.short(), "relationType": self.words(1)},
        ]
        return "\n".join(json.dumps(row) for row in rows).encode()

    def locomo(self) -> bytes:
        turn = {"speaker": self.short(), "dia_id": "D1:1", "text": self.words(), "blip_caption": self.words(1)}
        talk = {"speaker_a": self.short(), "session_1": [turn], "session_1_date_time": "1:56 pm on 8 May, 2023"}
        return json.dumps([{"sample_id": self.short(), "conversation": talk}]).encode()

    def op(self) -> tuple[int, bytes]:
        """An op of another device: well formed, of a newer version, or of no form at all."""
        rng, about = self.rng, ulid_bytes(self.id())
        kind = rng.randrange(9)
        body: dict[int, Any]
        if kind == 0:
            op_type, body = OpType.EVENT, ops.event_body(self.event())
            body |= {rng.choice([10, 10, 6, 7, 12, 13]): rng.choice([0, 60, self.words(), [self.words()], {1: "x"}])}
        elif kind in {1, 2}:
            memory = self.memory()
            values = {
                Field.CONTENT: memory.content,
                Field.CREATED_AT: NOW,
                Field.TRUST: rng.choice([memory.trust.value, "divine", self.words(1)]),
                Field.LAYER: memory.layer.value,
                Field.TOPIC: memory.topic,
                Field.NAME: memory.name,
                Field.KIND: rng.choice([memory.kind.value, self.short()]),
                Field.RESOURCE_ID: memory.resource_id,
                Field.SUPERSEDED_BY: memory.superseded_by,
                Field.METADATA: memory.metadata,
                99: rng.choice([self.words(), self.words().encode("utf-8", "replace"), [self.words()]]),
            }
            kept = rng.sample(list(values), k=rng.randint(4, len(values)))
            op_type, body = OpType.MEMORY, {1: about, 2: {int(key): values[key] for key in kept}}
        elif kind == 3:
            op_type, body = OpType.CLAIM, {1: about, 2: self.short()}
        elif kind == 4:
            op_type, body = OpType.UNCLAIM, {1: about, 2: self.short(), 3: [[NOW << 16, bytes(16)]]}
        elif kind == 5:
            op_type, body = OpType.GRIP, ops.grip_body(self.grip(self.id()))
        elif kind == 6:
            op_type, body = OpType.BLANK, {1: about, 2: [[0, 4]], 50: self.words()}
        elif kind == 7:
            op_type, body = rng.choice([77, OpType.COUNT]), {1: about, 2: 1, 3: 5, 4: NOW, 60: self.words()}
        else:
            return self.seq(), self.words().encode("utf-8", "replace")
        stamp = (NOW << 16) + rng.randrange(1 << 16)
        encoded = msgspec.msgpack.encode(
            (int(op_type), 1, uuid7(Millis(NOW), rng.randbytes(10)), Hlc(stamp), _utf8(body))
        )
        return self.seq(), encoded

    def seq(self) -> int:
        return self.rng.randrange(1, 1 << 40)

    # --- giving it ------------------------------------------------------------------------------------------------------

    async def give(self, service: Application) -> str:
        """Send one hostile input by one way in. Returns which way; a refusal is an answer as good as another."""
        rng = self.rng
        files: dict[str, tuple[str, Callable[[], bytes], str | None]] = {
            "export": ("x.jsonl", self.export, None),
            "transcript": ("s.jsonl", self.transcript, None),
            "markdown": ("n.md", self.notes, None),
            "text": ("n.txt", self.notes, None),
            "mcp": ("m.json", self.mcp, "mcp-memory"),
            "locomo": ("l.json", self.locomo, "locomo"),
        }
        way = rng.choice([*files, "export", "ops", "ops", "ops", "add", "ingest", "update", "observe"])
        try:
            if way in files:
                name, make, form = files[way]
                named = rng.choice([name, f"{self.short().split(chr(10))[0]}-{name}"])
                project = rng.choice([None, self.short()])
                await service.call(
                    PERSON, "import", api.ImportRequest(name=named, data=make(), format=form, project=project)
                )
            elif way == "ops":
                run = [self.op() for _ in range(rng.randint(1, 4))]
                device = rng.choice(["ab" * 16, "cd" * 16])
                await service.store.write(lambda tx: tx.ingest.receive(device, run))
            elif way == "ingest":
                event = self.event()
                draft = EventDraft(
                    agent=event.agent, session_id=event.session_id, type=event.type, text=event.text, role=event.role,
                    project=event.project, trust=event.trust, metadata=event.metadata, dedupe_key=event.dedupe_key,
                )  # fmt: skip
                await service.call(PERSON, "ingest", api.IngestRequest(events=(draft,)))
            elif way == "observe":
                text = self.words()
                turn = EventDraft(agent="crow", session_id="noted", type=EventType.USER_MESSAGE, text=text)
                await service.call(PERSON, "ingest", api.IngestRequest(events=(turn,)))
                fact = api.ObserveRequest(
                    scope=rng.choice(list(Scope)), content=text, topic=self.short(), session_id="noted"
                )
                await service.call(rng.choice([PERSON, AGENT]), "observe", fact)
            elif way == "add":
                memory = self.memory()
                await service.call(
                    PERSON,
                    "add",
                    MemoryDraft(
                        content=memory.content,
                        name=memory.name,
                        aliases=(f"{self.fresh()}\n{self.short()}",),
                        scope=memory.scope,
                        resource_id=memory.resource_id,
                        topic=memory.topic,
                        trust=Trust.AGENT,
                        metadata=memory.metadata,
                    ),
                )
            else:
                listed = (await service.call(PERSON, "list", api.ListRequest(limit=5))).entries
                if listed:
                    ref = rng.choice(listed).memory.id
                    await service.call(
                        PERSON, "update", api.UpdateRequest(ref=ref, content=self.words(), metadata=self.json())
                    )
                    await service.call(
                        PERSON, "alias", api.AliasRequest(ref=ref, alias=f"{self.fresh()}\n{self.short()}")
                    )
        except ScrubjayError:
            return f"{way}, refused"
        return way


def _utf8(value: Any) -> Any:
    """Return a value whose texts MessagePack can carry."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_utf8(key): _utf8(one) for key, one in value.items()}
    return [_utf8(one) for one in value] if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    return _utf8(msgspec.to_builtins(value))


# --- what must hold -----------------------------------------------------------------------------------------------------


async def broken(service: Application, planted: list[Planted], folder: Path | None = None) -> list[str]:
    """Return how the law is broken: a secret in a row (or, with `folder`, in any byte), a text where it may not stand."""
    found: list[str] = []
    wanted = [needle for one in planted for needle in needles(one)]
    tables = [
        row[0]
        for row in await service.store.read(lambda q: q.fetch("select name from sqlite_master where type = 'table'"))
    ]
    for table in tables:
        for row in await service.store.read(lambda q: q.fetch(f"select * from {table}")):
            held = b"\x1f".join(_bytes(value) for value in row)
            found += [f"{table} holds {needle!r}" for needle in wanted if needle in held]
    for memory_id, layer, trust in await service.store.read(
        lambda q: q.fetch("select id, layer, trust from memory where layer in ('identity', 'active')")
    ):
        if TRUST_ORDER.index(Trust(trust)) < TRUST_ORDER.index(Trust.AGENT):
            found.append(f"memory {memory_id}, trusted as {trust}, is in the layer {layer}")
    for role, trust in await service.store.read(lambda q: q.fetch("select distinct role, trust from event")):
        if (role, trust) in {("tool", "user"), ("tool", "agent"), ("assistant", "user"), ("system", "user")}:
            found.append(f"an event of a {role} is trusted as {trust}")
    return found + ([] if folder is None else in_files(folder, wanted))


def in_files(folder: Path, wanted: list[bytes]) -> list[str]:
    """Return which file of a folder holds which of some bytes."""
    files = [(path.name, path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()]
    return [f"{name} holds {needle!r}" for name, data in files for needle in wanted if needle in data]


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
