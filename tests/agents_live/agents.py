"""The five agents: where npm puts them, what a person's settings say before scrubjay, and how one is run once."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PACKAGES = {
    "claude-code": "@anthropic-ai/claude-code@2.1.330",
    "codex": "@openai/codex@0.169.0",
    "gemini": "@google/gemini-cli@0.61.0",
    "copilot": "@github/copilot@1.0.102",
    "opencode": "opencode-ai@1.18.33",
    "opencode-plugin": "@opencode-ai/plugin@1.18.33",
}
"""What is installed, each in a folder of that name; tested with these versions."""

PROGRAMS = {
    "claude-code": ("@anthropic-ai/claude-code-linux-x64/claude",),
    "codex": ("@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",),
    "gemini": ("node", "@google/gemini-cli/bundle/gemini.js"),
    "copilot": ("@github/copilot-linux-x64/copilot",),
    "opencode": ("opencode-linux-x64/bin/opencode",),
}


@dataclass(frozen=True, kw_only=True)
class Home:
    """A person's home, their project in it, and the address of the stub model."""

    root: Path
    model: str
    packages: Path
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        return self.root / "shop"

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Agent:
    """One agent. `prepare` writes the settings of a person who uses the stub model and does not know scrubjay yet."""

    host: str
    prepare: Callable[[Home], None]
    arguments: Callable[[str], list[str]]
    environ: Callable[[Home], dict[str, str]]

    def command(self, home: Home, prompt: str) -> list[str]:
        """Return the command line of one run that answers a prompt and ends."""
        *interpreter, program = PROGRAMS[self.host]
        start = [found for word in interpreter if (found := shutil.which(word))]
        return [*start, str(home.packages / self.host / "node_modules" / program), *self.arguments(prompt)]


def _claude(home: Home) -> None:
    home.write(".claude/settings.json", '{\n    "cleanupPeriodDays": 30,\n    "hooks": {\n        "Stop": []\n    }\n}')


def _codex(home: Home) -> None:
    home.write(
        ".codex/config.toml",
        f'# my settings\nmodel = "stub-1"\nmodel_provider = "stub"\ncheck_for_update_on_startup = false\n\n'
        f"[analytics]\nenabled = false\n\n[model_providers.stub]\n"
        f'name = "stub"\nbase_url = "{home.model}/v1"\nwire_api = "responses"\nenv_key = "STUB_KEY"\n\n'
        f'[projects."{home.project}"]\ntrust_level = "trusted"\n',
    )


def _gemini(home: Home) -> None:
    home.write(
        ".gemini/settings.json",
        '// mine\n{\n\t"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},\n'
        '\t"privacy": {"usageStatisticsEnabled": false},\n\t"telemetry": {"enabled": false}, // none\n'
        '\t"general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false}\n}\n',
    )


def _copilot(home: Home) -> None:
    home.write(".copilot/mcp-config.json", '{"mcpServers":{}}')


def _opencode(home: Home) -> None:
    limit = {"context": 100_000, "output": 4000}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "stub",
        "options": {"baseURL": f"{home.model}/v1", "apiKey": "stub"},
        "models": {"stub-1": {"name": "stub", "tool_call": True, "limit": limit}},
    }
    settings = {
        "$schema": "https://opencode.ai/config.json",
        "model": "stub/stub-1",
        "small_model": "stub/stub-1",
        "autoupdate": False,
        "share": "disabled",
        "permission": "allow",
        "provider": {"stub": provider},
    }
    home.write(".config/opencode/opencode.json", json.dumps(settings, indent=1) + "\r\n")
    plugin = home.packages / "opencode-plugin"
    if plugin.is_dir():  # without it OpenCode asks a registry for it, for more than a minute, when there is a plugin
        shutil.copytree(plugin, home.root / ".config/opencode", dirs_exist_ok=True)


def _folders(home: Home) -> dict[str, str]:
    root = home.root
    return {
        "XDG_DATA_HOME": str(root / ".local/share"),
        "XDG_CONFIG_HOME": str(root / ".config"),
        "XDG_CACHE_HOME": str(root / ".cache"),
        "XDG_STATE_HOME": str(root / ".local/state"),
    }


AGENTS = {
    agent.host: agent
    for agent in (
        Agent(
            host="claude-code",
            prepare=_claude,
            arguments=lambda prompt: [
                "-p",
                prompt,
                "--allowedTools",
                "Bash",
                "mcp__scrubjay",
                "--output-format",
                "json",
            ],
            environ=lambda home: {
                "ANTHROPIC_BASE_URL": home.model,
                "ANTHROPIC_API_KEY": "sk-ant-stub",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
                "DISABLE_TELEMETRY": "1",
            },
        ),
        Agent(
            host="codex",
            prepare=_codex,
            arguments=lambda prompt: [
                "exec",
                "--json",
                "--dangerously-bypass-hook-trust",
                "--dangerously-bypass-approvals-and-sandbox",
                prompt,
            ],
            environ=lambda home: {"STUB_KEY": "stub", "CODEX_HOME": str(home.root / ".codex")},
        ),
        Agent(
            host="gemini",
            prepare=_gemini,
            arguments=lambda prompt: ["-p", prompt, "--yolo", "-m", "gemini-2.5-flash", "--output-format", "json"],
            environ=lambda home: {
                "GEMINI_API_KEY": "stub",
                "GOOGLE_GEMINI_BASE_URL": home.model,
                "GEMINI_CLI_TRUST_WORKSPACE": "true",
            },
        ),
        Agent(
            host="copilot",
            prepare=_copilot,
            arguments=lambda prompt: ["-p", prompt, "--allow-all-tools", "--no-color"],
            environ=lambda home: {
                "COPILOT_PROVIDER_BASE_URL": f"{home.model}/v1",
                "COPILOT_PROVIDER_TYPE": "openai",
                "COPILOT_PROVIDER_API_KEY": "stub",
                "COPILOT_MODEL": "stub-1",
                "COPILOT_OFFLINE": "true",
                "COPILOT_AUTO_UPDATE": "false",
            },
        ),
        Agent(
            host="opencode",
            prepare=_opencode,
            arguments=lambda prompt: ["run", prompt, "--format", "json"],
            environ=lambda home: {
                "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
                "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
                **_folders(home),
            },
        ),
    )
}


def environment(home: Home) -> dict[str, str]:
    """Return the environment of everything in a home: nothing of the person who runs the tests."""
    return {
        "HOME": str(home.root),
        "PATH": os.pathsep.join(("/usr/local/bin", "/usr/bin", "/bin")),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "TMPDIR": str(home.root / "tmp"),
        **home.names,
    }


if __name__ == "__main__":  # for the Makefile, which installs them
    print("\n".join(f"{name}={package}" for name, package in PACKAGES.items()))  # noqa: T201
