"""What sync asks a person for: passwords, codes, confirmations. Nothing typed here is ever shown or kept."""

from __future__ import annotations

import getpass
import sys
from dataclasses import dataclass
from pathlib import Path

from scrubjay.cli.output import remarks
from scrubjay_shared.errors import DeniedError, InvalidError
from scrubjay_sync.policy import IDENTITY

TERMINAL = Path("/dev/tty")
"""A person's, which a program's redirected stdin is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Where answers come from: a terminal or, with `lines`, stdin, one answer a line, in the order of the questions."""

    lines: bool

    @property
    def person(self) -> bool:
        """Whether somebody is there to be asked."""
        return not self.lines and sys.stdin.isatty() and sys.stderr.isatty()

    def secret(self, what: str) -> str:
        """Return what is typed without an echo. Raises InvalidError when nobody can be asked."""
        if self.lines:
            return self._line(what)
        if not self.person:
            raise InvalidError(
                f"the {what} must be typed, and there is no terminal", hint="--password-stdin reads it from stdin"
            )
        return getpass.getpass(f"{what}: ", sys.stderr)

    def word(self, what: str, given: str | None) -> str:
        """Return what was given, or what is typed. Raises InvalidError when it is neither."""
        if given:
            return given
        if not self.person:
            raise InvalidError(
                f"the {what} must be typed, and there is no terminal",
                hint="give it as an option; --help lists the options",
            )
        sys.stderr.write(f"{what}: ")
        sys.stderr.flush()
        return self._line(what)

    def typed(self, what: str) -> str:
        """Return a line that is typed in sight. Raises InvalidError when nobody can be asked."""
        return self._line(what) if self.lines else self.word(what, None)

    def new_password(self) -> str:
        """Return a password typed twice. Raises InvalidError when it is short or the two differ, time after time."""
        for left in reversed(range(IDENTITY.tries)):
            password = self.secret(f"new password ({IDENTITY.password_least} characters or more)")
            if len(password) < IDENTITY.password_least:
                wrong = InvalidError(
                    f"a password has {IDENTITY.password_least} characters or more, that one has {len(password)}",
                    hint="four words that do not belong together make a good one",
                )
            elif self.person and self.secret("the same password again") != password:
                wrong = InvalidError("the two passwords are not the same", hint="nothing was changed; try again")
            else:
                return password
            if not left or not self.person:
                raise wrong
            remarks().print(f"{wrong.message}: {wrong.hint}", markup=False)
        raise AssertionError  # the last try returns or raises

    def means_it(self, question: str) -> bool:
        """Return whether the person says yes. Nobody to be asked is a no."""
        if not self.person:
            return False
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
        return self._line("answer").strip().lower() in {"y", "yes"}

    def must_mean(self, statement: str, name: str, given: str | None) -> None:
        """Have a name typed by somebody who has read what will be done. Raises DeniedError when it is another one."""
        if given == name:
            return
        remarks().print(f"\n{' '.join(statement.split())}\n", markup=False)
        if given is None and self.person:
            sys.stderr.write(f"type {name} to go on: ")
            sys.stderr.flush()
            if self._line("the name") == name:
                return
        raise DeniedError(
            f"{name} was not typed to confirm it: nothing was done",
            hint=f"type {name} when asked, or give --confirm {name}",
        )

    def at_terminal(self, what: str, word: str) -> bool:
        """Have a word typed at this process's own terminal, whatever stdin is. Returns False where there is none.

        Raises DeniedError for another word. A program that runs commands has no terminal, unless it makes one.
        """
        try:
            terminal = TERMINAL.open("r+b", buffering=0)
        except OSError:
            return False
        with terminal:
            terminal.write(f"{what}\nTo show that it is you, type {word}: ".encode())
            line = b""
            while not line.endswith(b"\n"):
                part = terminal.read(256)
                if not part:
                    break
                line += part
        if line.decode(errors="replace").strip().lower() != word:
            raise DeniedError(
                f"{word} was not typed: nothing was done", hint="run the command again, and type the word"
            )
        return True

    def _line(self, what: str) -> str:
        line = sys.stdin.readline()
        if not line:
            raise InvalidError(
                f"stdin ended before the {what.removeprefix('the ')}",
                hint="write one answer a line, in the order of the questions",
            )
        return line.rstrip("\r\n")
