"""A model server that counts the tokens of its callers itself, answers from a script, and fails when it is told to.

It speaks the chat completions of OpenAI, the messages of Anthropic, and Ollama's chat where it `is_ollama`. Its count is
the provider's: a budget is proved against it, not against our own ledger. What it refuses or fails at costs nothing, as
with providers; an answer that gets lost on its way does.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from scrubjay.policy import WriterPolicy
from scrubjay.settings import load
from scrubjay.writer import configured
from scrubjay.writer.budgeted import Chosen

KEY = "sk-a-key-of-nobody"
POLICY = WriterPolicy(wait_seconds=0.0, answer_seconds=5.0, answer_bytes=100_000)
FRAMING = 40  # tokens that its template adds to a prompt


@dataclass(frozen=True, kw_only=True)
class Fault:
    """How an answer goes wrong. `usage` and `body` take the place of what would be sent."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    usage: dict[str, Any] | None = None
    cut_off: bool = False
    silent: bool = False
    cut_short: bool = False


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request that came."""

    path: str
    headers: dict[str, str]
    system: str
    text: str
    most: int
    body: dict[str, Any]


class ModelServer(ThreadingHTTPServer):
    """`answer` says what it writes; `faults` are used up one by one, a None among them being an answer that is well."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[Asked] = []
        self.faults: deque[Fault | None] = deque()
        self.answer: Callable[[Asked], str] = lambda _: "It is written."
        self.is_ollama = False
        self.knows: frozenset[str] | None = None
        """The parameters that it takes, None: all; another is refused by its name."""
        self.context = 10**9
        """How many tokens it reads; of a longer prompt it loses the beginning without a word, as some servers do."""
        self.lists: dict[str, Any] = {}
        """What it answers to a look at a path: its models."""
        self.counted = 0
        """The tokens of everybody, read and written, as this server counts them."""
        self.reading = threading.Event()
        """Set when a request has come."""
        self.going_on = threading.Event()
        """What a silent answer waits for."""
        self._guard = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def count(self, tokens: int) -> None:
        with self._guard:
            self.counted += tokens

    def chosen(self, api: str = "openai", *, policy: WriterPolicy = POLICY, **options: str) -> Chosen:
        """Return the Writer of settings that name this server."""
        url = f"{self.url}/v1" if api == "openai" else self.url
        named = {"writer": api, "writer_url": url, "writer_model": "small", "writer_key_env": "WRITER_KEY", **options}
        settings = load(named, {"SCRUBJAY_HOME": "/nowhere"})
        found = configured.chosen(settings, {"WRITER_KEY": KEY}, policy)
        assert found is not None
        return found


@contextmanager
def model_server() -> Iterator[ModelServer]:
    server = ModelServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.going_on.set()
        server.shutdown()
        server.server_close()
        thread.join()


def tokens_of(text: str) -> int:
    """Count as tokenizers do: never more tokens than bytes, mostly fewer. Deterministic, and ours have no part in it."""
    return sum(-(-len(word.encode("utf-8", "replace")) // 3) for word in text.split(" "))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelServer

    def do_GET(self) -> None:
        lists = dict(self.server.lists)
        if self.server.is_ollama:
            lists["/api/version"] = {"version": "0.40.0"}
        found = lists.get(self.path)
        body = b"<p>a page</p>" if found is None else json.dumps(found).encode()
        self._send(Fault(status=404 if found is None else 200), body)

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        openai = self.path.endswith("/chat/completions")
        ollama = self.path == "/api/chat"
        roles = {message["role"]: message["content"] for message in body["messages"]}
        asked = Asked(
            path=self.path,
            headers=dict(self.headers.items()),
            system=roles.get("system", "") if openai or ollama else body.get("system", ""),
            text=roles["user"],
            most=body["options"]["num_predict"] if ollama else body.get("max_tokens") or body["max_completion_tokens"],
            body=body,
        )
        server.asked.append(asked)
        server.reading.set()
        fault = server.faults.popleft() if server.faults else None
        fault = fault or Fault()
        if server.knows is not None and (unknown := sorted(body.keys() - server.knows)):
            said = {"error": {"message": f"Unknown parameter: '{unknown[0]}'", "param": unknown[0]}}
            return self._send(Fault(status=400), json.dumps(said).encode())
        if fault.status >= 300:  # refused before it is read, or failed at
            return self._send(
                fault, fault.body or b'{"error": {"message": "no, because of: ' + asked.text.encode() + b'"}}'
            )
        read = min(tokens_of(asked.system) + tokens_of(asked.text) + FRAMING, server.context)
        server.count(read)
        if fault.silent:
            server.going_on.wait(30)
            self.close_connection = True
            return None
        answer: dict[str, Any]
        text = server.answer(asked)
        wrote = min(tokens_of(text), asked.most)
        server.count(wrote)
        is_cut = fault.cut_short or wrote == asked.most
        if ollama:
            usage = {"prompt_eval_count": read, "eval_count": wrote}
            answer = {
                "model": body["model"],
                "message": {"content": text},
                "done_reason": "length" if is_cut else "stop",
            }
            answer |= usage if fault.usage is None else fault.usage
            return self._send(fault, json.dumps(answer).encode() if fault.body is None else fault.body)
        if openai:
            usage = {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}
            answer = {
                "model": f"{body['model']}-1",
                "choices": [{"message": {"content": text}, "finish_reason": "length" if is_cut else "stop"}],
            }
        else:
            usage = {"input_tokens": read - 5, "cache_read_input_tokens": 5, "output_tokens": wrote}
            answer = {
                "model": f"{body['model']}-1",
                "content": [{"type": "thinking", "thinking": "…"}, {"type": "text", "text": text}],
                "stop_reason": "max_tokens" if is_cut else "end_turn",
            }
        answer["usage"] = usage if fault.usage is None else fault.usage
        return self._send(fault, json.dumps(answer).encode() if fault.body is None else fault.body)

    def _send(self, fault: Fault, body: bytes) -> None:
        self.send_response(fault.status)
        for name, value in ({"Content-Type": "application/json"} | fault.headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(OSError):  # the caller has seen enough
            self.wfile.write(body[: len(body) // 2] if fault.cut_off else body)
        self.close_connection = fault.cut_off

    def log_message(self, *_: object) -> None:
        pass


def with_policy(**numbers: Any) -> WriterPolicy:
    """Return the policy of these tests with some other numbers."""
    return replace(POLICY, **numbers)
