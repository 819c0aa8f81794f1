"""The chat completions of OpenAI, which llama.cpp, vLLM and many others answer too; and Ollama's own `/api/chat`.

Ollama answers chat completions as well, but takes neither the size of the context nor "do not think" there: it cuts a
longer prompt without a word. So a server that says that it is Ollama is asked in its own way.
"""

from __future__ import annotations

from typing import Any

from scrubjay.policy import WriterPolicy
from scrubjay.writer.connection import CHECK_URL, Connection
from scrubjay.writer.port import Prompt, Usage, UsageUnknownError, Written, counted, named

MOST_TOKENS_OF_OPENAI = "max_completion_tokens"
"""What OpenAI's own servers call the bound of an answer; their newer models refuse `max_tokens`, the others' word."""

WISHES = {"temperature": (0,), "reasoning_effort": ("none", "low")}
"""What is asked for where the model takes it: the likeliest answer, and no tokens for thinking, or few."""

WISHES_OF_OTHERS = {**WISHES, "chat_template_kwargs": ({"enable_thinking": False},)}
"""What vLLM and llama.cpp take besides: the templates of models that think by default know this word."""


class OpenAiWriter:
    """A model behind `/chat/completions`, or Ollama's."""

    def __init__(self, connection: Connection, model: str, policy: WriterPolicy) -> None:
        self._connection = connection
        self._model = model
        self._policy = policy
        self._own = connection.host.partition(":")[0].endswith(("openai.com", "openai.azure.com"))
        self._is_ollama: bool | None = False if self._own else None  # None: not looked yet

    async def write(self, prompt: Prompt) -> Written:
        """Ask once. Raises as `port.Writer.write` says."""
        if self._is_ollama is None:
            told = await self._connection.look(self._connection.beside("api/version"))
            self._is_ollama = isinstance(told, dict) and isinstance(told.get("version"), str)
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.text}]
        if self._is_ollama:
            return self._read_ollama(await self._ask_ollama(prompt, messages), prompt)
        body = {
            "model": self._model,
            "messages": messages,
            MOST_TOKENS_OF_OPENAI if self._own else "max_tokens": prompt.max_output_tokens,
            "stream": False,
        }
        wishes = WISHES if self._own else WISHES_OF_OTHERS
        return self._read(await self._connection.post("chat/completions", body, wishes), prompt)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    async def _ask_ollama(self, prompt: Prompt, messages: list[dict[str, str]]) -> Any:
        # One size for all prompts that fit, since Ollama loads the model anew for another. Two bytes make a token at
        # most in what people say; where more do, `truncate` has it refuse the prompt, as newer versions can.
        context = self._policy.context_tokens
        while context < prompt.bytes // 2 + prompt.max_output_tokens:
            context *= 2
        body = {
            "model": self._model,
            "messages": messages,
            "stream": False,
            "truncate": False,
            "shift": False,
            "options": {"num_ctx": context, "num_predict": prompt.max_output_tokens, "temperature": 0},
        }
        return await self._connection.post(self._connection.beside("api/chat"), body, {"think": (False,)})

    def _read_ollama(self, answer: Any, prompt: Prompt) -> Written:
        reported = answer if isinstance(answer, dict) else {}
        message = reported.get("message")
        return self._written(
            message.get("content") if isinstance(message, dict) else None,
            reported.get("prompt_eval_count"),
            reported.get("eval_count"),
            reported.get("model"),
            prompt,
            cut_short=reported.get("done_reason") == "length",
        )

    def _read(self, answer: Any, prompt: Prompt) -> Written:
        reported = answer if isinstance(answer, dict) else {}
        usage = reported.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        try:
            choice = answer["choices"][0]
            text, cut_short = choice["message"]["content"] or "", choice.get("finish_reason") == "length"
        except (AttributeError, KeyError, IndexError, TypeError):
            text, cut_short = None, False
        return self._written(
            text,
            usage.get("prompt_tokens"),
            usage.get("completion_tokens"),
            reported.get("model"),
            prompt,
            cut_short=cut_short,
        )

    def _written(
        self, text: object, read: object, wrote: object, model: object, prompt: Prompt, *, cut_short: bool
    ) -> Written:
        """Return what a server answered. Raises UsageUnknownError where it holds no text."""
        read, read_estimated = counted(read, prompt.bytes + self._policy.framing_tokens)
        wrote, wrote_estimated = counted(wrote, prompt.max_output_tokens)
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
            cut_short=cut_short,
        )
