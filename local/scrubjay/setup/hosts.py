"""The table of the hosts: which files each reads, and what of scrubjay stands in them. Pure.

Events are those that say something once: what others repeat (PostToolBatch, PreCompress) is not registered, and a file
with an event that a version does not know may be ignored whole, so only long-standing names are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrubjay.setup import texts
from scrubjay.setup.json_edits import Hooks, Server
from scrubjay.setup.program import Machine
from scrubjay.setup.target import Target, json_file, own_file, toml_server

CAPTURE_S = 10
"""After how many seconds a host may end a hook that takes in an event; it needs a tenth of one."""

INJECT_S = 5
"""Likewise for one that prints context: the person waits for it."""

CLOSING_S = 3
"""Likewise at the end of a session, where Codex allows no more."""

CLAUDE = {
    "SessionStart": True,
    "UserPromptSubmit": True,
    "PostToolUse": False,
    "PostToolUseFailure": False,
    "Stop": False,
    "SubagentStop": False,
    "PreCompact": False,
    "PostCompact": False,
    "SessionEnd": False,
}
"""Claude Code's events, and whether context is given back at it."""

CODEX = {event: inject for event, inject in CLAUDE.items() if event != "PostToolUseFailure"}
GEMINI = {"SessionStart": True, "BeforeAgent": True, "AfterTool": False, "AfterAgent": False, "SessionEnd": False}
COPILOT = {
    "sessionStart": True,
    "userPromptSubmitted": True,
    "postToolUse": False,
    "postToolUseFailure": False,
    "agentStop": False,
    "preCompact": False,
    "sessionEnd": False,
}
CURSOR = {
    "sessionStart": True,
    "beforeSubmitPrompt": False,
    "postToolUse": False,
    "afterAgentResponse": False,
    "preCompact": False,
    "sessionEnd": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A program that scrubjay sets up: its name, what people call it, its files, and what is left for the person to do.

    `captures` is false for those that get the MCP server alone. `folder` is there where the program is installed.
    """

    name: str
    title: str
    captures: bool
    folder: Callable[[Machine], Path]
    targets: Callable[[Machine], tuple[Target, ...]]
    then: str = ""


def seconds(event: str, *, inject: bool) -> int:
    """Return after how many seconds the host may end the hook."""
    return CLOSING_S if event.casefold() == "sessionend" else INJECT_S if inject else CAPTURE_S


def _handlers(
    machine: Machine, host: str, events: Mapping[str, bool], made: Callable[[tuple[str, ...], int], dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    return {
        event: made(machine.registered(host, event, inject=inject), seconds(event, inject=inject))
        for event, inject in events.items()
    }


def _stdio(machine: Machine, **more: Any) -> dict[str, Any]:
    command, *args = machine.mcp()
    return {**more, "command": command, "args": args}


def _files(folder: Path, files: Iterable[tuple[str, str, str]]) -> tuple[Target, ...]:
    return tuple(own_file(folder / name, what, content, mark=texts.MARK) for name, what, content in files)


def claude_code(machine: Machine) -> tuple[Target, ...]:
    """Return Claude Code's: hooks as lists of words, which no shell splits, and the server of the person's scope."""
    folder = _claude_folder(machine)
    exec_form = _handlers(
        machine,
        "claude-code",
        CLAUDE,
        lambda line, s: {"type": "command", "command": line[0], "args": list(line[1:]), "timeout": s},
    )
    servers = (folder if machine.environ.get("CLAUDE_CONFIG_DIR") else machine.home) / ".claude.json"
    entry = Server(path=("mcpServers", "scrubjay"), entry=_stdio(machine, type="stdio"))
    return (
        json_file(folder / "settings.json", "hooks", hooks=Hooks(handlers=exec_form), comments=False),
        json_file(servers, "MCP server", server=entry, comments=False),
        *_files(folder / "skills", texts.claude_skills()),
    )


def _claude_folder(machine: Machine) -> Path:
    return machine.folder("CLAUDE_CONFIG_DIR", ".claude")


def codex(machine: Machine) -> tuple[Target, ...]:
    """Return Codex's. Its trust hangs on a hook's place in its list: ours is added last and renewed in place."""
    folder = machine.folder("CODEX_HOME", ".codex")
    handlers = _handlers(
        machine,
        "codex",
        CODEX,
        lambda line, s: {"type": "command", "command": machine.shell(line), "timeout": s},
    )
    command, *args = machine.mcp()
    return (
        json_file(folder / "hooks.json", "hooks", hooks=Hooks(handlers=handlers), comments=False),
        toml_server(folder / "config.toml", command, args),
        *_files(folder, texts.codex_files()),
    )


def gemini(machine: Machine) -> tuple[Target, ...]:
    """Return Gemini CLI's: hooks, with milliseconds, and the server in one file."""
    folder = machine.home / ".gemini"
    handlers = _handlers(
        machine,
        "gemini",
        GEMINI,
        lambda line, s: {
            "type": "command",
            "name": "scrubjay",
            "command": machine.shell(line),
            "timeout": s * 1000,
        },
    )
    entry = Server(path=("mcpServers", "scrubjay"), entry=_stdio(machine) | {"timeout": 10_000})
    return (
        json_file(
            folder / "settings.json",
            "hooks and MCP server",
            hooks=Hooks(handlers=handlers, matcher="*"),
            server=entry,
        ),
        *_files(folder / "commands", texts.gemini_commands()),
    )


def copilot(machine: Machine) -> tuple[Target, ...]:
    """Return Copilot CLI's: camelCase events alone, because it delivers to both spellings what both register."""
    folder = machine.folder("COPILOT_HOME", ".copilot")
    shell = "powershell" if machine.platform == "win32" else "bash"
    handlers = _handlers(
        machine, "copilot", COPILOT, lambda line, s: {"type": "command", shell: machine.shell(line), "timeoutSec": s}
    )
    hooks = Hooks(handlers=handlers, grouped=False, head={"version": 1})
    entry = Server(path=("mcpServers", "scrubjay"), entry=_stdio(machine, type="local") | {"tools": ["*"]})
    return (
        json_file(folder / "hooks" / "scrubjay.json", "hooks", hooks=hooks),
        json_file(folder / "mcp-config.json", "MCP server", server=entry),
        *_files(folder / "skills", texts.skills()),
    )


def opencode(machine: Machine) -> tuple[Target, ...]:
    """Return OpenCode's: a plugin, because it has no hooks in its settings, and the server."""
    folder = _opencode_folder(machine)
    entry = Server(path=("mcp", "scrubjay"), entry={"type": "local", "command": list(machine.mcp()), "enabled": True})
    plugin = texts.opencode_plugin([str(machine.hook), *machine.options])
    return (
        own_file(folder / "plugins" / "scrubjay.js", "plugin", plugin, mark=texts.MARK, extra=False),
        json_file(folder / "opencode.json", "MCP server", server=entry, instead=(folder / "opencode.jsonc",)),
        *_files(folder / "commands", texts.markdown_commands()),
    )


def _opencode_folder(machine: Machine) -> Path:
    named = machine.environ.get("OPENCODE_CONFIG_DIR")
    return Path(named) if named else machine.folder("XDG_CONFIG_HOME", ".config") / "opencode"


def cursor(machine: Machine) -> tuple[Target, ...]:
    """Return Cursor's."""
    folder = machine.home / ".cursor"
    handlers = _handlers(machine, "cursor", CURSOR, lambda line, s: {"command": machine.shell(line), "timeout": s})
    hooks = Hooks(handlers=handlers, grouped=False, head={"version": 1})
    entry = Server(path=("mcpServers", "scrubjay"), entry=_stdio(machine))
    return (
        json_file(folder / "hooks.json", "hooks", hooks=hooks),
        json_file(folder / "mcp.json", "MCP server", server=entry),
        *_files(folder / "commands", texts.markdown_commands()),
    )


def _code_folder(machine: Machine) -> Path:
    if machine.platform == "darwin":
        return machine.home / "Library" / "Application Support" / "Code" / "User"
    return machine.config() / "Code" / "User"


def _zed_folder(machine: Machine) -> Path:
    return machine.config() / ("Zed" if machine.platform == "win32" else "zed")


CLINE = Path("globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json")
"""Where Cline's extension keeps its servers, in the folder of VS Code."""


def vscode(machine: Machine) -> tuple[Target, ...]:
    """Return VS Code's server. It reads the hooks of Copilot CLI and of Claude Code by itself."""
    entry = Server(path=("servers", "scrubjay"), entry=_stdio(machine, type="stdio"))
    return (json_file(_code_folder(machine) / "mcp.json", "MCP server", server=entry),)


def zed(machine: Machine) -> tuple[Target, ...]:
    """Return Zed's server."""
    entry = Server(path=("context_servers", "scrubjay"), entry=_stdio(machine, source="custom") | {"env": {}})
    return (json_file(_zed_folder(machine) / "settings.json", "MCP server", server=entry),)


def windsurf(machine: Machine) -> tuple[Target, ...]:
    """Return Windsurf's server."""
    entry = Server(path=("mcpServers", "scrubjay"), entry=_stdio(machine))
    return (json_file(_windsurf_folder(machine) / "mcp_config.json", "MCP server", server=entry),)


def _windsurf_folder(machine: Machine) -> Path:
    return machine.home / ".codeium" / "windsurf"


def cline(machine: Machine) -> tuple[Target, ...]:
    """Return the server of Cline's extension in VS Code."""
    entry = Server(path=("mcpServers", "scrubjay"), entry=_stdio(machine) | {"disabled": False})
    return (json_file(_code_folder(machine) / CLINE, "MCP server", server=entry),)


APPROVE = "start Codex and approve the hooks with /hooks: until then it skips them without a word"

HOSTS: dict[str, Host] = {
    host.name: host
    for host in (
        Host(
            name="claude-code",
            title="Claude Code",
            captures=True,
            folder=_claude_folder,
            targets=claude_code,
            then="sessions that run already go on without it until they are started again",
        ),
        Host(
            name="codex",
            title="Codex",
            captures=True,
            folder=lambda machine: machine.folder("CODEX_HOME", ".codex"),
            targets=codex,
            then=APPROVE,
        ),
        Host(
            name="gemini",
            title="Gemini CLI",
            captures=True,
            folder=lambda machine: machine.home / ".gemini",
            targets=gemini,
        ),
        Host(
            name="copilot",
            title="Copilot CLI",
            captures=True,
            folder=lambda machine: machine.folder("COPILOT_HOME", ".copilot"),
            targets=copilot,
        ),
        Host(
            name="opencode",
            title="OpenCode",
            captures=True,
            folder=_opencode_folder,
            targets=opencode,
            then="npm install --prefix ~/.config/opencode @opencode-ai/plugin, once while there is a network: with any"
            " plugin OpenCode looks for that package when it starts, and waits more than a minute without one",
        ),
        Host(
            name="cursor",
            title="Cursor",
            captures=True,
            folder=lambda machine: machine.home / ".cursor",
            targets=cursor,
            then="let Cursor not run Claude Code's hooks as well (Settings, Hooks), or both deliver each event",
        ),
        Host(name="vscode", title="VS Code", captures=False, folder=_code_folder, targets=vscode),
        Host(name="zed", title="Zed", captures=False, folder=_zed_folder, targets=zed),
        Host(name="windsurf", title="Windsurf", captures=False, folder=_windsurf_folder, targets=windsurf),
        Host(
            name="cline",
            title="Cline",
            captures=False,
            folder=lambda machine: (_code_folder(machine) / CLINE).parent,
            targets=cline,
        ),
    )
}
"""Every host by its name: those whose sessions are taken in, then those that get the MCP server alone."""
