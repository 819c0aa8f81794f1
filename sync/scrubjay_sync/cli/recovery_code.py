"""Showing a new recovery code to a person, and asking some of it back."""

from __future__ import annotations

from collections.abc import Callable

from scrubjay.cli.output import remarks
from scrubjay_shared.errors import InvalidError
from scrubjay_sync.cli.prompts import Prompts
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.policy import IDENTITY


def show_and_check(prompts: Prompts, code: RecoveryCode, pick: Callable[[int], bytes]) -> bool:
    """Show a recovery code and ask some of its groups back. Returns whether they were; nobody to ask is a no.

    Raises InvalidError after three wrong answers: a code that was not written down must not be relied on.
    """
    if not prompts.person:
        return False
    console = remarks()
    console.print(
        "\nThis is your recovery code, the only way back when every device is lost. Write it down now:\n",
        markup=False,
    )
    console.print(f"    {code.text}\n", markup=False, style="bold")
    console.print(
        "It is not shown again. Whoever has it and your password can read everything.\n"
        f"To check what you wrote, type {IDENTITY.asked_back} of its groups.\n",
        markup=False,
    )
    for place in sorted(_some(len(code.groups), IDENTITY.asked_back, pick)):
        for _ in range(IDENTITY.tries):
            if _same(prompts.word(f"group {place + 1} of the code", None), code.groups[place]):
                break
            console.print(f"that is not group {place + 1}: compare with what you wrote", markup=False)
        else:
            raise InvalidError(
                f"group {place + 1} was wrong {IDENTITY.tries} times: nothing was done, and that code is void",
                hint="run the command again: it shows a new code",
            )
    return True


def _some(count: int, wanted: int, pick: Callable[[int], bytes]) -> set[int]:
    found: set[int] = set()
    while len(found) < wanted:
        found.add(pick(1)[0] % count)
    return found


def _same(typed: str, group: str) -> bool:
    return RecoveryCode.letters(typed) == group
