"""An installed coding agent as a Writer: started for one prompt in an empty folder, and gone with all that it kept.

The agent is a program of the person and runs with their rights and login; what it prints is untrusted. It is given no
tools and no hooks, and `SCRUBJAY_HOOK=off`, which scrubjay's own hooks obey whatever the agent makes of its flags. One
run at a time: agents refresh their logins, and two at once would get in each other's way.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from scrubjay.policy import WriterPolicy
from scrubjay.spawning import NO_WINDOW
from scrubjay.writer.agents import CWD, HOME, Agent, Run, usage_of, written
from scrubjay.writer.port import NOTHING, NotReachedError, Prompt, Usage, UsageUnknownError, Written
from scrubjay_shared.errors import DeniedError, NotFoundError, TooManyError

ASKED, PRINTED = "asked", "printed"
"""The files that are a run's standard input and output."""

LOOK_SECONDS = 0.05
"""Between looks at how much was printed: 10 microseconds each, and a fault prints some megabytes in this time."""

HOOK_OFF = {"SCRUBJAY_HOOK": "off"}
QUIET = {"NO_COLOR": "1", "TERM": "dumb"}

OF_A_SESSION = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION", "CLAUDE_PID")
"""How variables begin that an agent sets for what it starts: the daemon may have been started by one."""


class AgentWriter:
    """One agent. `environ` is the person's environment, which holds its login or leads to it."""

    def __init__(self, agent: Agent, model: str, environ: Mapping[str, str], policy: WriterPolicy) -> None:
        self._agent = agent
        self._model = model
        self._environ = {name: value for name, value in environ.items() if not name.startswith(OF_A_SESSION)}
        self._policy = policy
        self._one_at_a_time = asyncio.Lock()

    async def write(self, prompt: Prompt) -> Written:
        """Run the agent once. Raises as `port.Writer.write` says."""
        name = self._agent.name
        program = shutil.which(self._agent.program, path=self._environ.get("PATH"))
        if program is None:
            raise NotFoundError(
                f"the agent {name} is not installed where the daemon looks for programs",
                hint=f"start the daemon from a terminal in which {self._agent.program} runs, or set another writer",
            )
        async with self._one_at_a_time:
            with tempfile.TemporaryDirectory(prefix="scrubjay-writer-", ignore_cleanup_errors=True) as folder:
                run = self._agent.run(prompt, folder, self._model, self._environ)
                await asyncio.to_thread(_prepare, Path(folder), run)
                code, printed = await self._ended(program, run, Path(folder))
        return self._understood(prompt, code, printed.decode("utf-8", "replace"))

    async def _ended(self, program: str, run: Run, folder: Path) -> tuple[int, bytes]:
        """Run to the end and return the exit code and what was printed.

        Standard input and output are files: a pipe that something the agent started holds open would keep us waiting.
        """
        name, printed = self._agent.name, folder / PRINTED
        with (folder / ASKED).open("rb") as stdin, printed.open("wb") as stdout:
            try:
                process = await asyncio.create_subprocess_exec(
                    program,
                    *run.arguments,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=asyncio.subprocess.DEVNULL,  # it may quote the prompt, and nobody would read it
                    cwd=folder / CWD,
                    env={**self._environ, **QUIET, **run.environ, **HOOK_OFF},
                    start_new_session=sys.platform != "win32",
                    creationflags=NO_WINDOW,
                )
            except OSError as error:
                raise NotReachedError(
                    f"{name} cannot be started ({error.strerror})", hint=f"run {self._agent.program} in a terminal"
                ) from None
        try:
            async with asyncio.timeout(self._policy.answer_seconds):
                code = await self._watched(process, printed)
        except TimeoutError:
            raise UsageUnknownError(
                f"{name} did not answer within {self._policy.answer_seconds:g} seconds",
                hint="a smaller model (writer_model) answers sooner",
            ) from None
        finally:
            await _end(process)
        return code, await asyncio.to_thread(printed.read_bytes)

    async def _watched(self, process: asyncio.subprocess.Process, printed: Path) -> int:
        """Wait for the end and return the exit code. Raises UsageUnknownError when too much is printed."""
        ended = asyncio.ensure_future(process.wait())
        try:
            while True:
                done, _ = await asyncio.wait({ended}, timeout=LOOK_SECONDS)
                if printed.stat().st_size > self._policy.answer_bytes:  # noqa: ASYNC240 microseconds
                    raise UsageUnknownError(
                        f"{self._agent.name} printed more than {self._policy.answer_bytes:,} bytes",
                        hint=f"run {self._agent.program} in a terminal and see what it prints",
                    )
                if done:
                    return ended.result()
        finally:
            ended.cancel()

    def _understood(self, prompt: Prompt, code: int, printed: str) -> Written:
        name = self._agent.name
        answer = self._agent.read(printed)
        most = Usage(input_tokens=prompt.bytes + self._agent.framing_tokens, output_tokens=prompt.max_output_tokens)
        if answer.status in {401, 403}:
            raise DeniedError(f"{name} is not logged in ({answer.status})", hint=f"log in with {self._agent.program}")
        if answer.status == 429:
            raise TooManyError(
                f"{name} has used up what its subscription allows now (429)", hint="wait, or see its usage"
            )
        if code != 0 or answer.text is None:
            # What it printed is not shown: it may quote the prompt.
            usage, estimated = usage_of(answer, most)
            if code != 0 and estimated:  # it gave up and counted nothing: not logged in, a flag that it does not know
                usage, estimated = NOTHING, False
            raise UsageUnknownError(
                f"{name} ended without an answer (exit code {code})",
                hint=f"run {self._agent.program} in a terminal: it may have to be logged in or updated",
                usage=None if estimated else usage,
            )
        return written(answer, answer.text, most, self._model or name)


def _prepare(folder: Path, run: Run) -> None:
    """Write what a run needs into its own folder, which nobody else may read."""
    for name in (CWD, HOME):
        (folder / name).mkdir(mode=0o700)
    for name, text in (*run.files.items(), (ASKED, run.stdin)):
        (folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8", errors="replace")
    for name, target in run.links.items():
        (folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if Path(target).is_file():
            _lead(folder / name, Path(target))


def _lead(link: Path, target: Path) -> None:
    """Have a name lead to a file of the agent's. Windows lets few make symbolic links, and hard ones on one disk only.

    Raises NotReachedError where there is no way.
    """
    ways: tuple[Callable[[], object], ...] = (
        lambda: link.symlink_to(target),
        lambda: link.hardlink_to(target),
        lambda: shutil.copyfile(target, link),
    )
    for way in ways:
        try:
            way()
        except OSError as error:
            reason = error.strerror
        else:
            return
    raise NotReachedError(f"{target} cannot be given to the agent ({reason})", hint="see that it can be read")


async def _end(process: asyncio.subprocess.Process) -> None:
    """End whatever of a run is still there: its whole process group, for agents start processes of their own."""
    if sys.platform == "win32":
        with suppress(psutil.Error):
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
    else:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
