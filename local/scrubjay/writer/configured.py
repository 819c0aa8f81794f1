"""The Writer that the settings name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from scrubjay.policy import WriterPolicy
from scrubjay.setting_values import is_this_machine
from scrubjay.settings import WRITER_SERVERS, Settings
from scrubjay.writer.agents import AGENTS
from scrubjay.writer.budget import Caps
from scrubjay.writer.budgeted import Chosen
from scrubjay.writer.headless import AgentWriter
from scrubjay.writer.port import Prompt, Writer, Written
from scrubjay_shared.errors import DeniedError

OFF = "none"
RELAYED = ("-cloud", ":cloud")
"""How Ollama ends the names of models that it does not run itself: it sends what they are asked on to its makers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyless:
    """Stands where a Writer's key is not in the environment: nothing is sent without it."""

    variable: str

    async def write(self, prompt: Prompt) -> Written:  # noqa: ARG002 the signature of the port
        """Raise DeniedError, naming the variable."""
        raise DeniedError(
            f"the environment variable {self.variable} is not set, which writer_key_env says holds the key",
            hint=f"set {self.variable} where the daemon is started, then scrubjay daemon stop and start",
        )


def caps(settings: Settings) -> Caps:
    """Return the caps that the settings set."""
    return Caps(daily=settings.writer_daily_tokens, monthly=settings.writer_monthly_tokens)


def chosen(settings: Settings, environ: Mapping[str, str], policy: WriterPolicy) -> Chosen | None:
    """Return the Writer that the settings name, None where they name none.

    `environ` holds the key of a server under the name that the settings give. Nothing is asked here.
    """
    if settings.writer == OFF:
        return None
    if settings.writer in WRITER_SERVERS:
        return _server(settings, environ, policy)
    agent = AGENTS[settings.writer]
    return Chosen(
        writer=AgentWriter(agent, settings.writer_model, environ, policy),
        name=agent.name,
        model=settings.writer_model or agent.name,
        destination=f"{agent.program}, and from there to its model",
        leaves=True,
        framing_tokens=agent.framing_tokens,
    )


def _server(settings: Settings, environ: Mapping[str, str], policy: WriterPolicy) -> Chosen:
    from scrubjay.writer.anthropic import VERSION, AnthropicWriter  # noqa: PLC0415 httpx2 costs 80 ms; most need none
    from scrubjay.writer.connection import Connection  # noqa: PLC0415 likewise
    from scrubjay.writer.openai import OpenAiWriter  # noqa: PLC0415 likewise

    url = settings.writer_url
    key = environ.get(settings.writer_key_env, "") if settings.writer_key_env else ""
    writer: Writer
    if settings.writer_key_env and not key:
        writer = Keyless(variable=settings.writer_key_env)
    elif settings.writer == "anthropic":
        headers = {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}
        connection = Connection(url, headers, policy)
        writer = AnthropicWriter(connection, settings.writer_model, framing_tokens=policy.framing_tokens)
    else:
        connection = Connection(url, {"Authorization": f"Bearer {key}"} if key else {}, policy)
        writer = OpenAiWriter(connection, settings.writer_model, policy)
    address = urlsplit(url)
    relayed = settings.writer_model.endswith(RELAYED) and is_this_machine(address.hostname or "")
    return Chosen(
        writer=writer,
        name=settings.writer,
        model=settings.writer_model,
        destination=f"{address.netloc}, and from there to ollama.com" if relayed else address.netloc,
        leaves=relayed or not is_this_machine(address.hostname or ""),
        framing_tokens=policy.framing_tokens,
    )
