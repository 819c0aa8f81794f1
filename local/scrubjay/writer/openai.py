"""The chat completions of OpenAI, which Ollama, llama.cpp and vLLM answer too."""

from __future__ import annotations

from typing import Any

from scrubjay.writer.connection import CHECK_URL, Connection
from scrubjay.writer.port import Prompt, Usage, UsageUnknownError, Written, counted, named

MOST_TOKENS_OF_OPENAI = "max_completion_tokens"
"""What OpenAI's own servers call the bound of an answer; their newer models refuse `max_tokens`, the others' word."""


class OpenAiWriter:
    """A model behind `/chat/completions`. `framing_tokens` are what the server may add to a prompt."""

    def __init__(self, connection: Connection, model: str, *, framing_tokens: int) -> None:
        self._connection = connection
        self._model = model
        self._framing_tokens = framing_tokens

    async def write(self, prompt: Prompt) -> Written:
        """Ask once. Raises as `port.Writer.write` says."""
        own = self._connection.host.partition(":")[0].endswith(("openai.com", "openai.azure.com"))
        body = {
            "model": self._model,
            "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.text}],
            MOST_TOKENS_OF_OPENAI if own else "max_tokens": prompt.max_output_tokens,
            "stream": False,
        }
        answer = await self._connection.post("chat/completions", body)
        return self._read(answer, prompt)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    def _read(self, answer: Any, prompt: Prompt) -> Written:
        usage = answer.get("usage") if isinstance(answer, dict) else None
        reported = usage if isinstance(usage, dict) else {}
        read, read_estimated = counted(reported.get("prompt_tokens"), prompt.bytes + self._framing_tokens)
        wrote, wrote_estimated = counted(reported.get("completion_tokens"), prompt.max_output_tokens)
        try:
            choice = answer["choices"][0]
            text = choice["message"]["content"] or ""
            model = answer.get("model")
        except (KeyError, IndexError, TypeError):
            text = None
        if not isinstance(text, str):
            raise UsageUnknownError(
                f"{self._connection.host} answered without a text",
                hint=CHECK_URL,
                usage=Usage(input_tokens=read, output_tokens=wrote),
            )
        return Written(
            text=text,
            input_tokens=read,
            output_tokens=wrote,
            model=named(model, self._model),
            estimated=read_estimated or wrote_estimated,
            cut_short=choice.get("finish_reason") == "length",
        )
