"""Long texts are stored with their beginning and their end. Pure."""

from __future__ import annotations

from scrubjay import redaction
from scrubjay.policy import DEFAULT, MemoryPolicy

SEAM = "\n[… {} characters left out …]\n"


def bounded(text: str, most: int, policy: MemoryPolicy = DEFAULT) -> str:
    """Return a text of at most about `most` characters: half from its beginning, half from its end.

    Secrets are taken out before it is cut, for half a secret is not known as one: of each end, as much is looked at as
    the longest secret has characters more. A private passage may be longer still, and is taken out of the whole.
    """
    if len(text) <= most:
        return text
    half = most // 2
    text = redaction.without_passages(text)
    reach = half + policy.redact.key_max_chars
    if len(text) <= 2 * reach:
        text = redaction.clean(text, policy.redact).text
        head, tail = text, text
    else:
        head = redaction.clean(text[:reach], policy.redact).text
        tail = redaction.clean(text[-reach:], policy.redact).text
    if len(text) <= most:
        return text
    return head[:half].rstrip() + SEAM.format(len(text) - 2 * half) + tail[-half:].lstrip()
