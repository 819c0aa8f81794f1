"""The Claude Code plugin in the repository is what its module says, so that it is never behind `scrubjay setup`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from host_machine import machine
from scrubjay.setup import claude_plugin, texts
from scrubjay.setup.hosts import HOSTS

PLUGINS = Path(__file__).parents[1] / "plugins"
FOLDER = PLUGINS / "claude-code"


def test_the_files_of_the_plugin_are_those_of_its_module() -> None:
    wanted = {FOLDER / path: content for path, content in claude_plugin.plugin().items()}
    wanted[PLUGINS / ".claude-plugin" / "marketplace.json"] = claude_plugin.marketplace()
    if os.environ.get("SCRUBJAY_WRITE_DOCS"):
        for path, content in wanted.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")

    there = {path: path.read_text(encoding="utf-8") for path in PLUGINS.rglob("*") if path.is_file()}
    assert there == wanted


def test_the_plugin_registers_the_events_that_setup_registers() -> None:
    hooks, *_ = HOSTS["claude-code"].targets(machine())
    set_up = json.loads(hooks.install(None))["hooks"]
    in_plugin = json.loads(claude_plugin.plugin()["hooks/hooks.json"])["hooks"]

    def words(groups: list[dict[str, list[dict[str, Any]]]]) -> str:
        handler = groups[0]["hooks"][0]
        line = " ".join(handler["args"]) if "args" in handler else str(handler["command"]).partition("&& ")[2]
        return line.partition("scrubjay-hook ")[2].replace("--data-dir /data/of ana ", "").removesuffix("; exit 0")

    assert {event: words(groups) for event, groups in set_up.items()} == {
        event: words(groups) for event, groups in in_plugin.items()
    }


def test_every_command_and_the_skill_say_when_they_are_ours() -> None:
    written = [
        content
        for host in HOSTS.values()
        for target in host.targets(machine())
        if target.extra
        for content in [target.install(None).decode()]
    ]

    assert len(written) >= 5 * 4
    assert all(texts.MARK in content for content in written)
    assert all("None" not in content and "{given}" not in content for content in written)
