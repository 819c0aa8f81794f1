"""What must never be stored is taken out here: credentials, private passages, and our own words coming back.

Theory of operation. `clean` runs three removals in an order that matters: our own injected blocks first (one of them
may speak of `<private>`), private passages next (their secrets need no marker), credentials last. Each is idempotent.

`redact` gathers spans and replaces them in one step, so no rule sees another's output within a pass:

1. anchored shapes (`rules.RULES`, in `shapes`): looked for only in the text's long unbroken runs, tried only
   where their anchor stands;
2. what the surroundings give away (`structured`): private key blocks, passwords in URLs, Authorization headers,
   cookies, and arguments of commands;
3. values assigned to names like password, secret or token (`assignments`). After a password's name also a plain word
   goes, where files and shells hold literals; in code and in talk only what no sentence holds by accident;
4. nameless runs that look random (`shapes`).

Overlapping spans become one, named after the most specific. Taking a secret out may uncover another that it touched,
so passes repeat until nothing is found. All quantifiers are bounded, and so is the work at one place: time grows with
the text's length. `re` holds the interpreter's lock during a call, so no call walks over more than a window of the
text (`windows`): the daemon answers others meanwhile. Most texts hold none of the signs that any rule needs.

It decides by form alone and asks no issuer, so it errs: a password that is an ordinary word in running prose is missed,
and a random-looking identifier of 32 characters or more is taken for a key. It holds no secret, and returns none.
"""

from scrubjay.redaction.blocks import INJECTED_CLOSE, INJECTED_OPEN, defused, injected
from scrubjay.redaction.pipeline import (
    Cleaned,
    CleanedJson,
    Redaction,
    clean,
    clean_json,
    harmless,
    redact,
    without_passages,
)

__all__ = [
    "INJECTED_CLOSE",
    "INJECTED_OPEN",
    "Cleaned",
    "CleanedJson",
    "Redaction",
    "clean",
    "clean_json",
    "defused",
    "harmless",
    "injected",
    "redact",
    "without_passages",
]
