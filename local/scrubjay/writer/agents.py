"""The coding agents that can be a Writer: how each is run once without hooks, tools and sessions, and how it answers.

Pure: a plan of what to run and how to read what it prints. `headless` runs it. The flags were tried with the versions
that `make agents-live` installs; an agent that does not know one refuses to start, and nothing is sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scrubjay.writer.port import Prompt, Usage, Written, counted

CWD = "empty"
"""The folder in which an agent runs, inside one of its own; empty, so that there are no instructions to find."""

HOME = "home"
"""The folder for what an agent would keep of a session, gone when it has ended."""

SYSTEM = "system.md"
"""The file of the instructions: not an argument, which every user of the machine may see."""

PLAIN = "Answer with text alone."
"""The instructions of a prompt that has none: an agent would put its own there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: the program's arguments, its standard input, its environment beyond the person's, and its files.

    `files` are written into the run's own folder, `links` lead from there to files of the person that hold a login.
    """

    arguments: tuple[str, ...]
    stdin: str
    environ: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an agent said: its text, None where it says none; the tokens that it reports, and the model.

    `status` is the HTTP status that its own server refused with, 0 where it says none; `cut_short` says that the text
    ends where its most tokens were used up.
    """

    text: str | None = None
    input_tokens: object = None
    output_tokens: object = None
    model: str = ""
    status: int = 0
    cut_short: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent: how it is run for a prompt in a folder, with which model, and how what it prints is read.

    `framing_tokens` are the most tokens that it adds to a prompt, by the bytes of its requests with a margin, and
    `own_tokens` about how many these are.
    """

    name: str
    program: str
    run: Callable[[Prompt, str, str, Mapping[str, str]], Run]
    read: Callable[[str], Answer]
    framing_tokens: int
    own_tokens: int


def _claude(prompt: Prompt, folder: str, model: str, _: Mapping[str, str]) -> Run:
    # --safe-mode leaves out the person's instructions, plugins, skills and hooks; the flags after it say so once more,
    # for what it may come to mean.
    return Run(
        arguments=(
            "-p",
            "--output-format",
            "json",
            "--no-session-persistence",
            "--safe-mode",
            "--strict-mcp-config",
            "--disable-slash-commands",
            "--tools",
            "",
            "--settings",
            '{"disableAllHooks":true}',
            "--effort",
            "low",
            "--system-prompt-file",
            f"{folder}/{SYSTEM}",
            *(("--model", model) if model else ()),
        ),
        stdin=prompt.text,
        environ={"CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(prompt.max_output_tokens)},
        files={SYSTEM: prompt.system},
    )


CODEX_OFF = (
    "hooks",
    "plugins",
    "apps",
    "memories",
    "goals",
    "multi_agent",
    "shell_tool",
    "unified_exec",
    "view_image",
    "image_generation",
)
"""What is turned off in Codex: its hooks and its tools."""


def _codex(prompt: Prompt, folder: str, model: str, _: Mapping[str, str]) -> Run:
    # The person's config.toml names servers of tools, which no flag turns off together; so it is not read at all.
    return Run(
        arguments=(
            "exec",
            "--json",
            "--ephemeral",
            "--ignore-user-config",
            "--ignore-rules",
            "--skip-git-repo-check",
            "--sandbox",
            "read-only",
            *(word for feature in CODEX_OFF for word in ("--disable", feature)),
            "-c",
            'web_search="disabled"',
            "-c",
            "project_doc_max_bytes=0",
            "-c",
            'model_reasoning_effort="low"',
            *(("--model", model) if model else ()),
            "-",
        ),
        stdin=f"{prompt.system}\n\n{prompt.text}" if prompt.system else prompt.text,
        environ={"CODEX_SQLITE_HOME": f"{folder}/{HOME}"},
    )


GEMINI_LOGIN = (".env", "oauth_creds.json", "google_accounts.json")
"""The files of a login with Gemini CLI, below `.gemini`."""


def _gemini(prompt: Prompt, folder: str, model: str, environ: Mapping[str, str]) -> Run:
    # Gemini CLI keeps every session, so it gets a home of its own, with the person's login.
    login = "gemini-api-key" if environ.get("GEMINI_API_KEY") else "oauth-personal"
    if environ.get("GOOGLE_GENAI_USE_VERTEXAI") == "true":
        login = "vertex-ai"
    settings = {
        "security": {"auth": {"selectedType": login}, "folderTrust": {"enabled": False}},
        "hooksConfig": {"enabled": False},
        "tools": {"core": ["none"]},
        "mcp": {"allowed": ["none"]},
        "skills": {"enabled": False},
        "experimental": {"enableAgents": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "plan": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    person = environ.get("GEMINI_CLI_HOME") or environ.get("HOME") or environ.get("USERPROFILE") or ""
    return Run(
        arguments=(
            "-p",
            "",
            "--output-format",
            "json",
            "--skip-trust",
            "--extensions",
            "none",
            "--allowed-mcp-server-names",
            "none",
            *(("--model", model) if model else ()),
        ),
        stdin=prompt.text,
        environ={"GEMINI_CLI_HOME": f"{folder}/{HOME}", "GEMINI_SYSTEM_MD": f"{folder}/{SYSTEM}"},
        files={
            f"{HOME}/.gemini/settings.json": json.dumps(settings),
            SYSTEM: prompt.system or PLAIN,
        },
        links={f"{HOME}/.gemini/{name}": f"{person}/.gemini/{name}" for name in GEMINI_LOGIN if person},
    )


def _opencode(prompt: Prompt, folder: str, model: str, _: Mapping[str, str]) -> Run:
    settings = {
        "share": "disabled",
        "autoupdate": False,
        "permission": {"*": "deny"},
        "agent": {
            "scrubjay-writer": {
                "mode": "primary",
                "prompt": prompt.system or PLAIN,
                "tools": {"*": False},
                "permission": {"*": "deny"},
            }
        },
    }
    return Run(
        arguments=(
            "run",
            "--pure",
            "--format",
            "json",
            "--agent",
            "scrubjay-writer",
            "--title",
            "scrubjay",
            *(("--model", model) if model else ()),
        ),
        stdin=prompt.text,
        environ={
            "OPENCODE_CONFIG": f"{folder}/opencode.json",
            "OPENCODE_DB": ":memory:",
            "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
            "OPENCODE_DISABLE_CLAUDE_CODE": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
        },
        files={"opencode.json": json.dumps(settings)},
    )


def _read_claude(printed: str) -> Answer:
    result = _object(printed)
    usage = _dict(result.get("usage"))
    models = _dict(result.get("modelUsage"))
    each = [_dict(model) for model in models.values()]
    if each:  # all models that it asked, one for small things included
        read = [_sum(model, "inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens") for model in each]
        wrote = [_sum(model, "outputTokens") for model in each]
    else:
        read = [_sum(usage, "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")]
        wrote = [_sum(usage, "output_tokens")]
    status = result.get("api_error_status")
    failed = result.get("is_error") is not False or result.get("subtype") != "success"
    return Answer(
        text=None if failed else _text(result.get("result")),
        input_tokens=sum(read),
        output_tokens=sum(wrote),
        model=next(iter(models), ""),
        status=status if isinstance(status, int) else 0,
        cut_short=result.get("stop_reason") == "max_tokens",
    )


def _read_codex(printed: str) -> Answer:
    texts: list[str] = []
    read = wrote = 0
    failed = False
    for event in _lines(printed):
        item = _dict(event.get("item"))
        if event.get("type") == "item.completed" and item.get("type") == "agent_message":
            texts += [text for text in (_text(item.get("text")),) if text is not None]
        failed |= event.get("type") == "turn.failed"
        if event.get("type") == "turn.completed":
            usage = _dict(event.get("usage"))
            read += _sum(usage, "input_tokens")
            wrote += _sum(usage, "output_tokens")
    return Answer(text=texts[-1] if texts and not failed else None, input_tokens=read, output_tokens=wrote)


def _read_gemini(printed: str) -> Answer:
    result = _object(printed)
    models = _dict(_dict(result.get("stats")).get("models"))
    tokens = [_dict(_dict(model).get("tokens")) for model in models.values()]
    return Answer(
        text=_text(result.get("response")),
        input_tokens=sum(_sum(one, "prompt", "tool") for one in tokens),
        output_tokens=sum(_sum(one, "candidates", "thoughts") for one in tokens),
        model=next(iter(models), ""),
    )


def _read_opencode(printed: str) -> Answer:
    texts: list[str] = []
    read = wrote = 0
    cut_short = False
    for event in _lines(printed):
        part = _dict(event.get("part"))
        if event.get("type") == "text":
            texts += [text for text in (_text(part.get("text")),) if text is not None]
        if event.get("type") == "step_finish":
            cut_short = part.get("reason") == "length"
            tokens = _dict(part.get("tokens"))
            read += _sum(tokens, "input") + _sum(_dict(tokens.get("cache")), "read", "write")
            wrote += _sum(tokens, "output", "reasoning")
    return Answer(text="".join(texts) if texts else None, input_tokens=read, output_tokens=wrote, cut_short=cut_short)


AGENTS: Mapping[str, Agent] = {
    agent.name: agent
    for agent in (
        # Bytes that a request holds beside the prompt: 2,000 in Claude Code 2.1.330, 24,600 in Codex 0.169.0, 900 in
        # Gemini CLI 0.61.0, 600 in OpenCode 1.18.33. Framing is twice that and more, for what other models and versions
        # add; a fourth of it are about the tokens.
        Agent(name="claude", program="claude", run=_claude, read=_read_claude, framing_tokens=6_000, own_tokens=500),
        Agent(name="codex", program="codex", run=_codex, read=_read_codex, framing_tokens=48_000, own_tokens=6_200),
        Agent(name="gemini", program="gemini", run=_gemini, read=_read_gemini, framing_tokens=4_000, own_tokens=200),
        Agent(
            name="opencode",
            program="opencode",
            run=_opencode,
            read=_read_opencode,
            framing_tokens=4_000,
            own_tokens=150,
        ),
    )
}


def usage_of(answer: Answer, most: Usage) -> tuple[Usage, bool]:
    """Return the tokens that an agent reports, `most` in place of what it does not, and whether any was replaced."""
    read, read_estimated = counted(answer.input_tokens, most.input_tokens)
    wrote, wrote_estimated = counted(answer.output_tokens, most.output_tokens)
    return Usage(input_tokens=read, output_tokens=wrote), read_estimated or wrote_estimated


def written(answer: Answer, text: str, most: Usage, model: str) -> Written:
    """Return what an agent wrote."""
    usage, estimated = usage_of(answer, most)
    return Written(
        text=text,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        model=answer.model[:200] or model,
        estimated=estimated,
        cut_short=answer.cut_short,
    )


def _object(printed: str) -> dict[str, Any]:
    """Return the JSON object that an agent printed, {} where it printed none. Warnings may stand before it."""
    start = printed.find("{")
    try:
        found = json.loads(printed[start:]) if start >= 0 else {}
    except (ValueError, RecursionError):
        return {}
    return _dict(found)


def _lines(printed: str) -> Iterator[dict[str, Any]]:
    for line in printed.splitlines():
        yield _object(line)


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _sum(values: Mapping[str, Any], *names: str) -> int:
    """Return the sum of some counts; what is no count adds nothing, and a sum of nothing is estimated later."""
    return sum(counted(values.get(name), 0)[0] for name in names)
