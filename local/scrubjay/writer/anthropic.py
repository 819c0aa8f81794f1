"""The messages of Anthropic."""

from __future__ import annotations

from typing import Any

from scrubjay.writer.connection import CHECK_URL, Connection
from scrubjay.writer.port import Prompt, Usage, UsageUnknownError, Written, counted, named

VERSION = "2023-06-01"
"""The version of the interface, sent with each request."""

READ = ("cache_creation_input_tokens", "cache_read_input_tokens")
"""Tokens that were read too: `input_tokens` leaves out what a cache took part in."""

WISHES = {"temperature": (0,), "thinking": ({"type": "disabled"},)}
"""What is asked for where the model takes it: the likeliest answer, and no tokens for thinking."""


class AnthropicWriter:
    """A model behind `/v1/messages`. `framing_tokens` are what the server may add to a prompt."""

    def __init__(self, connection: Connection, model: str, *, framing_tokens: int) -> None:
        self._connection = connection
        self._model = model
        self._framing_tokens = framing_tokens

    async def write(self, prompt: Prompt) -> Written:
        """Ask once. Raises as `port.Writer.write` says."""
        body: dict[str, object] = {
            "model": self._model,
            "max_tokens": prompt.max_output_tokens,
            "messages": [{"role": "user", "content": prompt.text}],
        }
        if prompt.system:
            body["system"] = prompt.system
        answer = await self._connection.post("v1/messages", body, WISHES)
        return self._read(answer, prompt)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    def _read(self, answer: Any, prompt: Prompt) -> Written:
        usage = answer.get("usage") if isinstance(answer, dict) else None
        reported = usage if isinstance(usage, dict) else {}
        read, read_estimated = counted(reported.get("input_tokens"), prompt.bytes + self._framing_tokens)
        read += sum(counted(reported.get(name), 0)[0] for name in READ)
        wrote, wrote_estimated = counted(reported.get("output_tokens"), prompt.max_output_tokens)
        try:
            parts = [block["text"] for block in answer["content"] if block["type"] == "text"]
            model = answer.get("model")
        except (KeyError, TypeError):
            parts = [None]
        if not all(isinstance(part, str) for part in parts):
            raise UsageUnknownError(
                f"{self._connection.host} answered without a text",
                hint=CHECK_URL,
                usage=Usage(input_tokens=read, output_tokens=wrote),
            )
        return Written(
            text="".join(parts),
            input_tokens=read,
            output_tokens=wrote,
            model=named(model, self._model),
            estimated=read_estimated or wrote_estimated,
            cut_short=answer.get("stop_reason") == "max_tokens",
        )
