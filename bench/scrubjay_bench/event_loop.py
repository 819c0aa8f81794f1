"""How long the daemon's event loop is held by each kind of request, with texts of 8 MB among the store's.

While the loop is held nobody is answered: an agent's hook waits for another one's import. Every operation is asked,
with the largest texts it takes, of a real daemon with a probe inside (`scrubjay_bench.held`), from another process.
"""

from __future__ import annotations

import base64
import itertools
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from scrubjay.settings import NO_MODEL, ensure_dirs
from scrubjay.transports.client import Client, Running
from scrubjay_bench import daemons, held, stores
from scrubjay_bench.figures import Figure, Rounds
from scrubjay_bench.held import Delay
from scrubjay_bench.plan import Plan
from scrubjay_bench.stores import Filling, Source
from scrubjay_shared.errors import ConflictError, InvalidError, NotFoundError, TooLargeError, UnavailableError
from scrubjay_shared.records import EventType

ITEMS = 100_000
GOAL_MS = 50
LARGE_CHARS = 7_900_000  # of a text: below the 8,000,000 that the daemon takes
SMALLER_SHARE = 8  # each kind of text is also there so many times smaller
PAGE_EVENTS = 12  # large events in one session: a page of them is 95 MB
IMPORTED_BYTES = 128 * 1024 * 1024  # of an export
REST_SECONDS = 2.0
SETTLE_MS = 600_000
WRITTEN_SECONDS = 0.1  # after a request: the last delay is then written
SEED = 11
WORDS = [
    "harbour",
    "ferry",
    "lantern",
    "granite",
    "orchard",
    "compass",
    "willow",
    "saffron",
    "meadow",
    "copper",
    "violin",
    "glacier",
    "pepper",
    "anchor",
    "velvet",
    "Lisbon",
    "Oslo",
    "October",
    "painting",
    "bicycle",
    "deploy",
    "failed",
    "because",
    "the",
    "migration",
    "was",
    "never",
    "run",
    "on",
    "staging",
    "we",
    "decided",
    "to",
]
QUESTION = "Which ferry in the harbour was painted copper in October, and why did the deploy fail?"

Operation = tuple[str, Callable[[], object]]


def texts(chars: int) -> dict[str, str]:
    """Return a text of each kind, of about so many characters: what agents' tools really give back, and the extremes.

    All begin alike, so that one question finds them all.
    """
    draw = random.Random(SEED)
    begin = "The ferry in the harbour was painted copper in October. "

    def words(count: int) -> str:
        return " ".join(draw.choices(WORDS, k=count))

    some = [words(draw.randrange(6, 18)) for _ in range(2_000)]
    noise = base64.b64encode(draw.randbytes(chars * 3 // 4)).decode()
    logs = (
        f"2026-03-{1 + n % 28:02}T10:{n % 60:02}:11Z INFO app.worker[{n}] {some[n % 1999]} id={noise[n : n + 16]}"
        for n in itertools.count()
    )
    objects = (
        json.dumps({"id": n, "name": some[n % 1997], "tags": ["a", "b"], "at": 1_767_225_600_000 + n})
        for n in itertools.count()
    )
    prose = (
        f"{some[n % 1993].capitalize()}. I prefer {some[n % 1987]}.{chr(10) * (n % 7 == 0)}" for n in itertools.count()
    )
    made = {
        "lines": _upto(logs, "\n", chars),
        "line": _upto(prose, " ", chars).replace("\n", " "),
        "base64": noise,
        "json": "[" + _upto(objects, ", ", chars) + "]",
        "prose": _upto(prose, " ", chars),
    }
    return {kind: (begin + text)[:chars] for kind, text in made.items()}


def _upto(parts: Iterator[str], between: str, chars: int) -> str:
    found: list[str] = []
    size = 0
    while size < chars:
        found.append(next(parts))
        size += len(found[-1]) + len(between)
    return between.join(found)


@dataclass(slots=True)
class Asking:
    """Every kind of request to one daemon, those with large texts too; `ids` are what earlier ones made."""

    client: Client
    folder: Path
    chars: int
    model: str
    texts: dict[str, str] = field(init=False)
    ids: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the texts."""
        self.texts = texts(self.chars)

    def operations(self) -> Iterator[Operation]:
        """Yield what to ask, one after another; later ones ask about what earlier ones stored."""
        yield from self._writes()
        yield "settle: learn and embed", partial(self.client.call, "POST", "/v1/settle", {"timeout_ms": 600_000})
        yield from self._reads()
        yield from self._imports()
        yield from self._refusals()
        yield from self._erasing()
        yield "backup", partial(self.client.call, "POST", "/v1/backup", {"path": str(self.folder / "copy.db")})
        yield "rebuild", partial(self.client.call, "POST", "/v1/rebuild", {})
        yield "use_model, none", partial(self.client.call, "POST", "/v1/models/use", {"name": NO_MODEL})
        yield "use_model, the one before", partial(self.client.call, "POST", "/v1/models/use", {"name": self.model})
        # The last, because to embed them all takes minutes, and nothing waits for it here.
        yield "import, notes", partial(self._import, "notes.md", self._notes().encode())
        yield "undo: the import of notes", self._undo
        yield "relearn, what it would do", partial(self.client.call, "POST", "/v1/relearn", {"dry_run": True})
        yield "consolidate", partial(self.client.call, "POST", "/v1/consolidate", {})
        yield "diff", partial(self.client.call, "GET", "/v1/diff", query={"since": 0, "limit": 500})
        yield "forgets", partial(self.client.call, "GET", "/v1/forgets", query={"limit": 500})
        yield "trace", self._trace
        yield "history", partial(self.client.call, "GET", "/v1/history", query={"limit": 500})

    def _writes(self) -> Iterator[Operation]:
        yield "ingest, one line", partial(self._ingest, [_draft("a short line", "small")])
        # Of a tool: to embed 5,000 lines of a person takes a minute, and is no part of taking them in.
        lines = [_draft(f"line {n} of the ferry", "small", tool=True) for n in range(5_000)]
        yield "ingest, 5,000 lines", partial(self._ingest, lines)
        for kind, text in self.texts.items():
            yield f"ingest, {kind}", partial(self._ingest, [_draft(text, kind)], keep=kind)
            small = _draft(text[: len(text) // SMALLER_SHARE], "tool", tool=True)
            yield f"ingest, {kind}, smaller", partial(self._ingest, [small])
        page = [_draft(self.texts["lines"][n:] + str(n), "page", tool=True) for n in range(PAGE_EVENTS)]
        for at in range(0, PAGE_EVENTS, 3):
            yield "ingest, three at once", partial(self._ingest, page[at : at + 3])
        yield "hook, a large answer of a tool", self._hook
        yield "add, one line", partial(self._add, "The ferry leaves at noon.", "small")
        for kind, text in self.texts.items():
            yield f"add, {kind}", partial(self._add, "M " + text, kind)
        yield "update, large", partial(self._about, "json", "PATCH", "", {"content": "U " + self.texts["prose"]})
        yield "update, salience of a large one", partial(self._about, "lines", "PATCH", "", {"salience": 0.9})
        yield "rename, a large one", partial(self._about, "lines", "POST", "/rename", {"name": "the lines"})
        yield (
            "supersede, large",
            partial(self._about, "json", "POST", "/supersede", {"content": "S " + self.texts["prose"]}),
        )
        yield "alias, a large one", partial(self._about, "lines", "POST", "/aliases", {"alias": "lines"})
        yield "learn, large", partial(self.client.call, "POST", "/v1/learn", {"text": "L " + self.texts["prose"]})
        fact = {"scope": "session", "content": self.texts["prose"][:200], "session_id": "prose"}
        yield "observe, of a large turn", partial(self.client.call, "POST", "/v1/observe", fact)
        value = "The person's name is Mara. " + self.texts["prose"][: self.chars // SMALLER_SHARE]
        yield "set_active, large", partial(self.client.call, "PUT", "/v1/active/current", {"value": value})
        yield "set_identity", partial(self.client.call, "PUT", "/v1/identity/human", {"value": "Mara"})

    def _reads(self) -> Iterator[Operation]:
        for path in ("/healthz", "/readyz", "/openapi.json", "/v1/status", "/v1/stats", "/v1/sessions", "/v1/models",
                     "/v1/conflicts", "/v1/context", "/v1/projects", "/v1/brief", "/v1/writer"):  # fmt: skip
            yield path.rpartition("/")[2], partial(self.client.call, "GET", path)
        yield "active", partial(self.client.call, "GET", "/v1/active")
        yield "dismiss_active", partial(self.client.call, "POST", "/v1/proposals/dismiss", {"every": True})
        yield "confirm_active", partial(self.client.call, "POST", "/v1/proposals/confirm", {"every": True})
        yield "route", partial(self.client.call, "POST", "/v1/route", {"query": QUESTION})
        yield "route, nothing named", partial(self.client.call, "POST", "/v1/route", {"query": "what is new?"})
        yield "teleport", partial(self.client.call, "POST", "/v1/teleport", {"query": QUESTION, "limit": 100})
        folder = str(self.folder / "vault")
        yield "vault_init", partial(self.client.call, "POST", "/v1/vaults", {"agent": "zara", "folder": folder})
        said = {"agent": "zara", "text": self.texts["prose"][:20_000]}
        yield "vault_remember", partial(self.client.call, "POST", "/v1/vaults/remember", said)
        asked = {"agent": "zara", "query": QUESTION}
        yield "vault_recall", partial(self.client.call, "POST", "/v1/vaults/recall", asked)
        for action in ("compact", "reflect", "sync", "stop"):
            yield f"vault_{action}", partial(self.client.call, "POST", f"/v1/vaults/{action}", {"agent": "zara"})
        yield "vaults", partial(self.client.call, "GET", "/v1/vaults")
        yield "layers", partial(self.client.call, "GET", "/v1/route/layers")
        yield "compact", partial(self.client.call, "POST", "/v1/sessions/page/compact", {})
        yield "replay", partial(self.client.call, "GET", "/v1/sessions/page/replay", query={"limit": 500})
        yield "agents", partial(self.client.call, "GET", "/v1/agents")
        yield "feedback", partial(self.client.call, "POST", "/v1/feedback", {"refs": ["the lines"], "helped": True})
        yield (
            "agent_activity",
            partial(self.client.call, "GET", "/v1/agents/activity", query={"since": 0, "bucket": "week"}),
        )
        yield "review", partial(self.client.call, "GET", "/v1/review", query={"limit": 500})
        yield "audit", partial(self.client.call, "GET", "/v1/audit")
        decided = {"refs": ["the lines"], "accept": True}
        yield "decide, a large one", partial(self.client.call, "POST", "/v1/review", decided)
        yield "jobs", partial(self.client.call, "GET", "/v1/jobs")
        yield "cost", partial(self.client.call, "GET", "/v1/cost")
        yield "job_runs", partial(self.client.call, "GET", "/v1/jobs/runs")
        for operation, path in (
            ("pause_job", "jobs/learn/pause"),
            ("resume_job", "jobs/learn/resume"),
            ("run_job", "jobs/maintain/run"),
            ("use_writer", "writer/use"),
        ):
            yield operation, partial(self.client.call, "POST", f"/v1/{path}", {})
        yield "recall", self._recall
        yield "recall, again", self._recall
        yield "recall, 100 hits", partial(self._recall, limit=100)
        yield "recall, neighbours", partial(self._recall, limit=100, neighbours=10)
        yield "recall, a large budget", partial(self._recall, limit=100, max_tokens=100_000_000)
        yield "recall, keyword", partial(self._recall, mode="keyword", limit=100)
        yield "recall, weighted", partial(self._recall, mode="weighted", limit=100)
        yield "recall, nothing asked", partial(self._recall, "", limit=100)
        yield "recall, a long question", partial(self._recall, self.texts["prose"][:8_000])
        for kind in self.texts:
            yield f"get, {kind}", partial(self._about, kind, "GET", "")
        yield "why, a large one", partial(self._about, "prose", "GET", "/why")
        yield "why, of large events", self._why
        yield "list, 500", partial(self.client.call, "GET", "/v1/memories", query={"limit": 500})
        oldest = {"limit": 500, "cursor": f"{int(stores.NOW)}-{ITEMS}"}
        yield "list, the oldest", partial(self.client.call, "GET", "/v1/memories", query=oldest)
        yield "events, 500", partial(self.client.call, "GET", "/v1/events", query={"limit": 500})
        yield "toc, all", partial(self.client.call, "GET", "/v1/toc")
        yield "timeline, 500 segments", partial(self._timeline, "segment")
        yield "timeline, days", partial(self._timeline, "day")
        yield "grip, of large events", self._grip
        yield (
            "events, large",
            partial(self.client.call, "GET", "/v1/events", query={"limit": 500, "session_id": "page"}),
        )

    def _imports(self) -> Iterator[Operation]:
        prose, lines = self.texts["prose"], self.texts["lines"]
        notes = self._notes()
        turns = "".join(
            json.dumps(
                {"type": "user", "uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, "sessionId": "import",
                 "timestamp": "2026-01-01T00:00:00Z", "cwd": "/somewhere",
                 "message": {"role": "user", "content": _said(lines[n * 1_500 :][:1_000], prompt=n % 10 == 0)}}
            ) + "\n"
            for n in range(self.chars // 1_500)
        )  # fmt: skip
        yield "import, one large note", partial(self._import, "one.md", b"# One\n\n" + prose[::-1].encode())
        yield "import, a transcript", partial(self._import, "talk.jsonl", turns.encode())
        body = {"name": "b.md", "data": base64.b64encode(notes[::-1].encode()).decode(), "dry_run": True}
        yield "import, base64 in JSON", partial(self.client.call, "POST", "/v1/import", body)
        yield "import, a text of 64 MB", partial(self._import, "large.txt", (prose * 8).encode(), dry_run=True)
        yield "export", self._export
        yield "import, an export", self._import_export

    def _notes(self) -> str:
        prose = self.texts["prose"]
        return "".join(f"# Note {n}\n\n{prose[n * 900 : n * 900 + 800]}\n\n" for n in range(self.chars // 1_000))

    def _refusals(self) -> Iterator[Operation]:
        prose = self.texts["prose"]
        halves = '"\\ud83d ' + "x\\ud83d\\n" * (self.chars // 9) + '"'
        one = json.dumps(_draft("TEXT", "halves")).replace('"TEXT"', halves)
        yield (
            "ingest, lone surrogates",
            partial(self.client.call, "POST", "/v1/events", f'{{"events": [{one}]}}'.encode()),
        )
        wide = b'{"events": [{"metadata": {"a": [' + b"[]," * 8_000_000 + b"[]]}}]}"
        wrong: tuple[tuple[str, str, bytes | Mapping[str, Any]], ...] = (
            ("ingest, 2,000,000 drafts", "/v1/events", b'{"events": [' + b"{}," * 2_000_000 + b"{}]}"),
            ("ingest, not JSON", "/v1/events", b'{"events": [' + b"1," * 10_000_000),
            ("ingest, nested deeply", "/v1/events", b"[" * 30_000_000),
            ("ingest, wide metadata", "/v1/events", wide),
            ("ingest, a text too large", "/v1/events", {"events": [_draft("x" * 9_000_000, "small")]}),
            ("add, a name of 8 MB", "/v1/memories", {"content": "x", "name": prose}),
            ("add, metadata of 8 MB", "/v1/memories", {"content": "x", "metadata": {"a": prose}}),
            ("recall, a question of 8 MB", "/v1/recall", {"query": prose}),
            ("ask, without a Writer", "/v1/ask", {"question": QUESTION}),
            ("try_writer, of no kind", "/v1/writer/try", {"writer": "none"}),
            ("trust_folder, of no project", "/v1/projects/trust", {"folder": str(self.folder)}),
        )
        for name, path, body in wrong:
            yield name, partial(self._refused, path, body)

    def _erasing(self) -> Iterator[Operation]:
        yield "forget, a small memory", partial(self._about, "small", "DELETE", "")
        yield "forget, a large memory", partial(self._about, "lines", "DELETE", "")
        yield "forget, what was learned", partial(self._about, "learned", "DELETE", "")
        for kind in ("prose", "lines"):
            yield f"forget, a large event, {kind}", partial(self._about, f"event {kind}", "DELETE", "")
        whole = {"session_id": "page"}
        yield "forget_all, of a session of large events", partial(self.client.call, "POST", "/v1/forget", whole)

    def _ingest(self, drafts: list[dict[str, Any]], keep: str = "") -> None:
        found = self.client.call("POST", "/v1/events", {"events": drafts})
        if keep:
            self.ids[f"event {keep}"] = found["ids"][0]

    def _add(self, content: str, keep: str) -> None:
        self.ids[keep] = self.client.call("POST", "/v1/memories", {"content": content})["memory"]["id"]

    def _about(self, kept: str, method: str, more: str, body: Mapping[str, Any] | None = None) -> None:
        self.client.call(method, f"/v1/memories/{self.ids[kept]}{more}", body)

    def _recall(self, text: str = QUESTION, **fields: object) -> None:
        self.client.call("POST", "/v1/recall", {"query": text, **fields})

    def _timeline(self, level: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.call("GET", "/v1/timeline", query={"level": level, "limit": 500})
        return found

    def _grip(self) -> None:
        """Ask what was said around a passage of a large text, which other large ones stand beside."""
        place = f"grip:{self.ids['event lines']}:0-56"
        self.client.call("GET", f"/v1/grips/{place}", query={"before": 50, "after": 50})

    def _import(self, name: str, data: bytes, **fields: object) -> None:
        self.client.call("POST", "/v1/import", data, query={"name": name, **fields})

    def _refused(self, path: str, body: bytes | Mapping[str, Any]) -> None:
        """Send what the daemon must refuse."""
        try:
            self.client.call("POST", path, body)
        except (TooLargeError, InvalidError, ConflictError, NotFoundError):
            return
        raise UnavailableError(f"the daemon took what it should refuse at {path}")

    def _why(self) -> None:
        """Ask about what was learned from a large text, whose event is in the answer."""
        found = self.client.call("POST", "/v1/recall", {"query": "I prefer", "kinds": ["memory"], "limit": 50})
        large = {id_ for kept, id_ in self.ids.items() if kept.startswith("event")}
        learned = (hit["id"] for hit in found["hits"] if large & {quote["event_id"] for quote in hit["sources"]})
        self.ids["learned"] = next(learned, found["hits"][0]["id"])
        self._about("learned", "GET", "/why")

    def _trace(self) -> None:
        [last] = self.client.call("GET", "/v1/history", query={"limit": 1})["causes"]
        self.client.call("GET", f"/v1/trace/{last['id']}")

    def _undo(self) -> None:
        [last] = self.client.call("GET", "/v1/history", query={"kind": "import", "limit": 1})["causes"]
        self.client.call("POST", "/v1/undo", {"cause": last["id"]})

    def _export(self) -> None:
        with (self.folder / "export").open("wb") as file:
            file.writelines(line + b"\n" for line in self.client.lines("/v1/export", timeout=daemons.LONG_SECONDS))

    def _hook(self) -> None:
        payload = {"session_id": "hook", "tool_use_id": "1", "tool_name": "Bash", "tool_response": self.texts["lines"]}
        self.client.call("POST", "/v1/hooks/codex", json.dumps(payload).encode(), query={"event": "PostToolUse"})

    def _import_export(self) -> None:
        """Import what of the export fits into one request: with the log it is twice as large as the store's texts."""
        with (self.folder / "export").open("rb") as file:
            data = file.read(IMPORTED_BYTES)
        self._import("all.jsonl", data[: data.rfind(b"\n") + 1])


def _said(text: str, *, prompt: bool) -> str | list[dict[str, str]]:
    """Return the content of a transcript's line: most are what tools gave back, which get no vector."""
    return text if prompt else [{"type": "tool_result", "tool_use_id": "t", "content": text}]


def _draft(text: str, session: str, *, tool: bool = False) -> dict[str, Any]:
    kind = EventType.TOOL_RESULT if tool else EventType.USER_MESSAGE
    return {"agent": "bench", "session_id": session, "type": kind.value, "text": text}


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """The longest that the loop was held while one operation ran, and how long that took, in milliseconds.

    `own` is the most that the loop's own thread computed in one go.
    """

    took: float
    delay: Delay
    own: float


@contextmanager
def serving(home: Path, plan: Plan, records: Path) -> Iterator[Client]:
    """Start a daemon with a probe that writes into `records`, and stop it afterwards."""
    chosen = daemons.settings_in(home, models_dir=plan.models_dir, model=plan.model)
    ensure_dirs(chosen)
    environ = daemons.environment(home, models_dir=plan.models_dir, model=plan.model)
    # A model that the environment names is that of the whole process, and `use_model` refuses to use another.
    del environ["SCRUBJAY_MODEL"]
    chosen.config_path.write_text(f'model = "{plan.model}"\n', encoding="utf-8")
    process = subprocess.Popen([sys.executable, "-m", "scrubjay_bench.held", str(records)], env=environ)
    try:
        while (record := Running.of(chosen.data_dir)) is None or record.pid != process.pid:
            if process.poll() is not None:
                raise UnavailableError("the daemon did not start", hint="run it once with scrubjay daemon start")
            time.sleep(daemons.LOOK_SECONDS)
        token = chosen.token_path.read_text(encoding="ascii").strip()
        with Client(
            token=token,
            socket_path=record.socket,
            address=(record.host, record.port),
            timeout=daemons.LONG_SECONDS,
        ) as client:
            yield client
    finally:
        process.terminate()
        process.wait()


def asked(
    asking: Asking, records: Path, say: Callable[[str], object], only: tuple[str, ...] = ("",)
) -> dict[str, Worst]:
    """Ask everything once, or what has a name that begins with one of `only`.

    Returns the worst delay of each kind of request; "at rest" is the probe's own.
    """
    found: dict[str, Worst] = {}
    rest: Operation = ("at rest", partial(time.sleep, REST_SECONDS))
    for name, ask in itertools.chain([rest], asking.operations()):
        if not name.startswith(only):
            continue
        if not name.startswith("settle"):  # what an earlier request left to be done is not this one's
            asking.client.call("POST", "/v1/settle", {"timeout_ms": SETTLE_MS})
        began = time.monotonic_ns()
        ask()
        took = (time.monotonic_ns() - began) / 1e6
        time.sleep(WRITTEN_SECONDS)
        during = [one for one in held.delays(records) if one.at > began]
        worst = max(during, key=lambda one: one.held, default=Delay(at=began, late=0.0, held=0.0, own=0.0))
        own = max((one.own for one in during), default=0.0)
        if name not in found or found[name].delay.held < worst.held:
            found[name] = Worst(took=took, delay=worst, own=own)
        say(
            f"{name:34} {took:9.0f} ms  held {worst.held:7.1f}  late {worst.late:7.1f}  own {worst.own:7.1f}"
            f"  {worst.where}\n"
        )
    return found


def measure(plan: Plan) -> list[Figure]:
    """Measure 100,000 items; some minutes a round."""
    return measured(plan, items=ITEMS, chars=LARGE_CHARS)


def measured(plan: Plan, *, items: int, chars: int) -> list[Figure]:
    """Measure a store of so many items, with texts of so many characters added to it."""
    rounds = Rounds()
    filling = Filling(items=items)
    store = stores.filled(filling, plan, Source(plan, filling.talks))
    names: list[str] = []
    for _ in range(plan.rounds):
        with daemons.scratch(plan.scratch) as folder:
            stores.copied(store, folder / "home")
            records = folder / "delays"
            with serving(folder / "home", plan, records) as client:
                asking = Asking(client=client, folder=folder, chars=chars, model=plan.model)
                found = asked(asking, records, sys.stderr.write, plan.only or ("",))
        names = list(found)
        for name, worst in found.items():
            rounds.add(_figure_name(name), worst.delay.held)
        rounds.add("loop.worst", max(worst.delay.held for worst in found.values()))
    return [
        rounds.figure(
            "loop.worst",
            "longest time that any of the requests below held the event loop",
            "ms",
            samples=1,
            goal=GOAL_MS,
        ),
        *(rounds.figure(_figure_name(name), name, "ms", samples=1, goal=GOAL_MS) for name in names),
    ]


def _figure_name(operation: str) -> str:
    return "loop." + "_".join("".join(c if c.isalnum() else " " for c in operation).split())
