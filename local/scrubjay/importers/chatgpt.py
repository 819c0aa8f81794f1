"""ChatGPT's export: conversations as trees of messages, each read along the branch that was left open.

`current_node` is the last message of that branch; its parents lead to the beginning. What hangs beside it was asked
again or answered anew, and is counted. Hidden messages, instructions of the account and calls of tools are not said by
anybody. Times are seconds, and may be missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from scrubjay.importers.parsing import Parsed, SourceFormat, clean, counted, first, millis
from scrubjay.importers.talk import Session, listed, part_of, whole_json
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventDraft, EventType, Json, Role

AGENT = "chatgpt"
SPEAKERS = {"user": (EventType.USER_MESSAGE, Role.USER), "assistant": (EventType.ASSISTANT_MESSAGE, Role.ASSISTANT)}
WORDS = ("text", "multimodal_text")
THOUGHTS = ("thoughts", "reasoning_recap")


def parse_chatgpt(name: str, data: bytes, *, project: str | None) -> Parsed:
    """Read conversations. Raises InvalidError for what is no JSON; what cannot be read is counted in `skipped`."""
    skipped: Counter[str] = Counter()
    events: list[EventDraft] = []
    for talk in listed(whole_json(name, data)):
        if isinstance(talk, dict) and isinstance(talk.get("mapping"), dict):
            events += said(talk, project, skipped)
        else:
            skipped["unknown" if isinstance(talk, dict) else "not_object"] += 1
    return Parsed(format=SourceFormat.CHATGPT, events=tuple(events), skipped=counted(skipped))


def said(talk: Json, project: str | None, skipped: Counter[str]) -> Iterator[EventDraft]:
    """Yield what was said in one conversation, in order."""
    nodes: Json = talk["mapping"]
    branch = path(nodes, clean(talk.get("current_node")))
    on_branch = set(branch)
    session = Session(
        agent=AGENT, id=first(talk, "conversation_id", "id") or branch[0] if branch else "", project=project
    )
    if not session.id:
        skipped["empty"] += 1
        return
    when = millis(talk.get("create_time")) or millis(talk.get("update_time"))
    for key, node in nodes.items():
        if key not in on_branch and words(part_of(node, "message"), Counter()):
            skipped["branch"] += 1
    for key in branch:
        message = part_of(nodes[key], "message")
        when = millis(message.get("create_time")) or when
        if message and (text := words(message, skipped)):
            yield event(session, key, message, text, when)


def event(session: Session, key: str, message: Json, text: str, when: Millis | None) -> EventDraft:
    """Return a message as an event."""
    kind, role = SPEAKERS[clean(part_of(message, "author").get("role"))]
    model = clean(part_of(message, "metadata").get("model_slug"))
    return session.event(kind, role, text, ts=when, key=clean(message.get("id")) or key, about={"model": model})


def path(nodes: Json, last: str) -> list[str]:
    """Return the branch that leads to a message, from its beginning. Without one, to the newest end there is."""
    if last not in nodes:
        ends = [key for key, node in nodes.items() if isinstance(node, dict) and not node.get("children")]
        last = max(ends, key=lambda key: (newest(nodes[key]), key), default="")
    found: list[str] = []
    seen: set[str] = set()
    while last and last in nodes and last not in seen:
        seen.add(last)
        found.append(last)
        node = nodes[last]
        last = clean(node.get("parent")) if isinstance(node, dict) else ""
    return found[::-1]


def newest(node: Json) -> int:
    """Return when a message was made; 0 where nothing says."""
    return millis(part_of(node, "message").get("create_time")) or 0


def words(message: Json, skipped: Counter[str]) -> str:
    """Return the words of a message that somebody said, or count why there are none."""
    content, about = part_of(message, "content"), part_of(message, "metadata")
    kind = clean(content.get("content_type"))
    reason = ""
    if clean(part_of(message, "author").get("role")) not in SPEAKERS:
        reason = "system"
    elif about.get("is_visually_hidden_from_conversation") or about.get("is_user_system_message"):
        reason = "meta"
    elif message.get("weight") == 0 or clean(message.get("recipient")) not in ("", "all"):
        reason = "other_block"
    elif kind not in WORDS:
        reason = "thinking" if kind in THOUGHTS else "other_block"
    if reason:
        skipped[reason] += 1
        return ""
    parts = content.get("parts")
    parts = parts if isinstance(parts, list) else [content.get("text")]
    skipped["image"] += sum(isinstance(part, dict) for part in parts)
    text = "\n".join(filter(None, (clean(part) for part in parts)))
    skipped["empty"] += not text and not any(isinstance(part, dict) for part in parts)
    return text
