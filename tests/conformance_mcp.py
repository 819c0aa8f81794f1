"""Runs the MCP project's conformance suite against a real daemon: `make conformance-mcp`, or one scenario by its name.

The suite asks for no token, so a proxy stands before the daemon that adds the agent's. What the suite says as its own
host and origin is said as the daemon's; a foreign host or origin passes as it is, and the daemon refuses it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import sys
import tempfile
from pathlib import Path

from scrubjay import settings as options
from scrubjay.daemon import control
from scrubjay.policy import DaemonPolicy

SCENARIOS = {
    "2025-11-25": (
        "server-initialize",
        "ping",
        "tools-list",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
    ),
    "2026-07-28": (
        *("tools-list", "resources-list", "prompts-list", "dns-rebinding-protection", "caching"),
        *("http-header-validation", "sep-2164-resource-not-found", "server-stateless"),
    ),
}
"""What applies to a server of its own tools, by revision. The others call fixtures of the suite's own (`test_…` tools,
`test://` resources), or what this server does not offer: sampling, elicitation, logging, tasks, completion, streams."""

ASKS_FOR_FIXTURES: dict[str, set[str]] = {
    "server-stateless": {
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
        "sep-2575-http-server-no-independent-requests-on-stream",
        "sep-2575-server-no-log-without-loglevel",
    }
}
"""Checks of a scenario that call a tool that only the suite's own server has."""


class Proxy:
    """Passes HTTP on to the daemon, with the agent's token."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token.encode()
        self.own = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one request of the suite by a connection of its own to the daemon."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError), contextlib.closing(writer):
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            body = await reader.readexactly(int(length[1])) if length else b""
            there, back = await asyncio.open_connection("127.0.0.1", self._port)
            with contextlib.closing(back):
                back.write(self._told(head) + body)
                await back.drain()
                writer.write(await there.read())  # the daemon closes after its answer, as it was asked to
                await writer.drain()

    def _told(self, head: bytes) -> bytes:
        mine = rb"(127\.0\.0\.1|localhost|\[::1\]):%d(?=\r\n)" % self.own
        head = re.sub(rb"(?i)(\r\nhost: *)" + mine, rb"\g<1>127.0.0.1:%d" % self._port, head)
        head = re.sub(rb"(?i)(\r\norigin: *http://)" + mine, rb"\g<1>127.0.0.1:%d" % self._port, head)
        head = re.sub(rb"(?i)\r\nconnection:[^\r]*", b"", head)
        return head[:-2] + b"Connection: close\r\nAuthorization: Bearer " + self._token + b"\r\n\r\n"


async def judged(command: list[str], revision: str, scenario: str, url: str) -> bool:
    """Run one scenario, print what it checks, and say whether it is as it should be."""
    words = ["server", "--timeout", "120000", "--url", url, "--scenario", scenario, "--spec-version", revision]
    process = await asyncio.create_subprocess_exec(
        *command, *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    told = (await process.communicate())[0].decode(errors="replace")
    told = re.sub(r"\x1b\[\d*m", "", told)
    failed = set(re.findall(r"\[([\w-]+) *\] FAILURE", told))
    counts = re.search(r"Passed: *\d+/\d+", told)
    # What needs a fixture must fail: the day it passes, the list above says too much.
    is_right = counts is not None and failed == ASKS_FOR_FIXTURES.get(scenario, set())
    print(f"{revision}  {scenario:<28} {counts[0] if counts else 'did not run':<16} {'ok' if is_right else 'FAILED'}")
    if not is_right:
        print(told)
    return is_right


async def run(suite: Path, node: str, only: str | None) -> int:
    """Run the scenarios against a daemon of its own."""
    with tempfile.TemporaryDirectory() as home:
        environ = {"SCRUBJAY_HOME": home, "SCRUBJAY_PORT": "0", "SCRUBJAY_MODEL": "none"}
        chosen = options.load(environ=environ)
        options.ensure_dirs(chosen)
        running = control.start(chosen, policy=DaemonPolicy(start_seconds=90.0)).daemon
        try:
            proxy = Proxy(running.port, (chosen.data_dir / "agent_token").read_text())
            server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
            proxy.own = server.sockets[0].getsockname()[1]
            url = f"http://127.0.0.1:{proxy.own}/mcp"
            command = [node, str(suite)]
            async with server:
                right = [
                    await judged(command, revision, scenario, url)
                    for revision, scenarios in SCENARIOS.items()
                    for scenario in scenarios
                    if only in {None, scenario}
                ]
        finally:
            control.stop(chosen)
    print(f"{sum(right)} of {len(right)} scenarios as they should be")
    return 0 if right and all(right) else 1


def main() -> int:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=Path, help="index.js of the suite")
    parser.add_argument("--node", default="node", help="Node.js 22 or newer")
    parser.add_argument("--scenario", help="only this one")
    given = parser.parse_args()
    return asyncio.run(run(given.suite, given.node, given.scenario))


if __name__ == "__main__":
    sys.exit(main())
