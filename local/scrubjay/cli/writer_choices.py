"""What could be the Writer here: servers on loopback, agents in PATH, keys in the environment by their names.

Looking sends nothing off this machine, starts no agent, and reads no key. A server is asked for its list of models.
"""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from scrubjay.cli.reports import WriterChoice
from scrubjay.setting_values import is_this_machine
from scrubjay.writer.agents import AGENTS
from scrubjay.writer.configured import RELAYED

OLLAMA = "ollama"
RELAYING = "ollama-cloud"
OLLAMA_PORT = 11434
SERVERS = {"llama.cpp": 8080, "lm-studio": 1234, "vllm": 8000}
"""Servers of chat completions, at the ports that they take by themselves."""
LOOK_SECONDS = 0.5
"""A server on this machine lists its models within milliseconds; what does not is something else."""
LIST_BYTES = 1_048_576
EMBEDDING = ("bert", "embed")
"""In the family or the name of a model that writes nothing."""

COMPANIES = {
    "claude": "Anthropic",
    "codex": "OpenAI",
    "gemini": "Google",
    "opencode": "the provider that it is set to",
}
SMALL = {"claude": "haiku"}
"""The models that agents are asked with: a small one is enough. Others have no name for it, and take their own."""

KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY", "anthropic", "https://api.anthropic.com"),
    "openai": ("OPENAI_API_KEY", "openai", "https://api.openai.com/v1"),
    "google": ("GEMINI_API_KEY", "openai", "https://generativelanguage.googleapis.com/v1beta/openai"),
    "mistral": ("MISTRAL_API_KEY", "openai", "https://api.mistral.ai/v1"),
    "openrouter": ("OPENROUTER_API_KEY", "openai", "https://openrouter.ai/api/v1"),
    "groq": ("GROQ_API_KEY", "openai", "https://api.groq.com/openai/v1"),
    "deepseek": ("DEEPSEEK_API_KEY", "openai", "https://api.deepseek.com/v1"),
}
"""By name: the variable that holds a key, what the server speaks, and its address."""
NAMES = (OLLAMA, RELAYING, *SERVERS, *AGENTS, *KEYS)


def found(environ: Mapping[str, str]) -> tuple[WriterChoice, ...]:
    """Return what could be turned on, those that keep text on this machine first."""
    with ThreadPoolExecutor() as threads:
        ollama = threads.submit(_ollama, _ollama_port(environ))
        others = [threads.submit(_server, name, port) for name, port in SERVERS.items()]
        servers = [*ollama.result(), *(choice for other in others for choice in other.result())]
    return (*sorted(servers, key=lambda choice: choice.leaves), *_agents(environ), *_keys(environ))


def _ollama_port(environ: Mapping[str, str]) -> int:
    """Return where Ollama listens by its own variable; its usual port where that names another machine or nothing."""
    host, _, port = environ.get("OLLAMA_HOST", "").rpartition("://")[2].rstrip("/").rpartition(":")
    here = host in {"", "0.0.0.0"} or is_this_machine(host)  # noqa: S104  # where it listens, not we
    return int(port) if here and port.isascii() and port.isdigit() and 0 < int(port) < 65_536 else OLLAMA_PORT


def _ollama(port: int) -> Iterator[WriterChoice]:
    listed = [model for model in _listed(port, "/api/tags", "models") if isinstance(model.get("name"), str)]
    writing = [model for model in listed if not _only_embeds(model)]
    relayed = [model for model in writing if model.get("remote_host") or model["name"].endswith(RELAYED)]
    url = f"http://127.0.0.1:{port}/v1"
    if own := tuple(model["name"] for model in writing if model not in relayed):
        yield WriterChoice(name=OLLAMA, models=own, **_here(url))
    if relayed:
        yield WriterChoice(
            name=RELAYING,
            models=tuple(model["name"] for model in relayed),
            writer="openai",
            url=url,
            destination="ollama.com, through Ollama on this machine",
            leaves=True,
            paid_by="plan",
        )


def _only_embeds(model: Mapping[str, Any]) -> bool:
    details = model.get("details")
    family = str(details.get("family")) if isinstance(details, dict) else ""
    return any(word in f"{family} {model['name']}".lower() for word in EMBEDDING)


def _server(name: str, port: int) -> list[WriterChoice]:
    listed = _listed(port, "/v1/models", "data")
    models = tuple(model["id"] for model in listed if isinstance(model.get("id"), str) and "embed" not in model["id"])
    return [WriterChoice(name=name, models=models, **_here(f"http://127.0.0.1:{port}/v1"))] if models else []


def _here(url: str) -> dict[str, Any]:
    return {
        "writer": "openai",
        "url": url,
        "destination": urlsplit(url).netloc,
        "leaves": False,
        "paid_by": "nobody",
    }


def _listed(port: int, path: str, key: str) -> list[dict[str, Any]]:
    """Return the models that a server on this machine lists, none where there is none or it is of another kind."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LOOK_SECONDS)
    try:
        connection.request("GET", path, headers={"Accept": "application/json"})
        answer = json.loads(connection.getresponse().read(LIST_BYTES))
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return []
    finally:
        connection.close()
    listed = answer.get(key) if isinstance(answer, dict) else None
    return [model for model in listed if isinstance(model, dict)] if isinstance(listed, list) else []


def _agents(environ: Mapping[str, str]) -> Iterator[WriterChoice]:
    for name, agent in AGENTS.items():
        if shutil.which(agent.program, path=environ.get("PATH")) is not None:
            yield WriterChoice(
                name=name,
                writer=name,
                models=(SMALL[name],) if name in SMALL else (),
                destination=f"{COMPANIES[name]}, under your login with {name}",
                leaves=True,
                paid_by="plan",
                own_tokens=agent.own_tokens,
            )


def _keys(environ: Mapping[str, str]) -> Iterator[WriterChoice]:
    for name, (variable, speaks, url) in KEYS.items():
        if environ.get(variable):
            yield WriterChoice(
                name=name,
                writer=speaks,
                url=url,
                key_env=variable,
                destination=urlsplit(url).netloc,
                leaves=True,
                paid_by="key",
            )
