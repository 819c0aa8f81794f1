"""ChatGPT's export: conversations as trees of messages, each read along the branch that was left open.

`current_node` is the last message of that branch; its parents lead to the beginning. What hangs beside it was asked
again or answered anew, and is counted. Hidden messages, instructions of the account and calls of tools are not said by
anybody. What was said by voice stands as its transcription. Times are seconds, and may be missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from scrubjay.importers.parsing import Parsed, SourceFormat, clean, counted, first, millis
from scrubjay.importers.talk import Session, listed, open_branch, part_of, whole_json
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventDraft, EventType, Json, Role

AGENT = "chatgpt"
SPEAKERS = {"user": (EventType.USER_MESSAGE, Role.USER), "assistant": (EventType.ASSISTANT_MESSAGE, Role.ASSISTANT)}
WORDS = ("text", "multimodal_text")
VOICE = ("audio_transcription", "audio_asset_pointer", "real_time_user_audio_video_asset_pointer")
"""Parts of what was said by voice: its words, and the sound, which stands beside them and is not counted."""

THOUGHTS = ("thoughts", "reasoning_recap")


def parse_chatgpt(name: str, data: bytes, *, project: str | None) -> Parsed:
    """Read conversations. Raises InvalidError for what is no JSON; what cannot be read is counted in `skipped`."""
    skipped: Counter[str] = Counter()
    events: list[EventDraft] = []
    left: list[str] = []
    for talk in listed(whole_json(name, data)):
        if isinstance(talk, dict) and isinstance(talk.get("mapping"), dict):
            events += said(talk, project, skipped, left)
        else:
            skipped["unknown" if isinstance(talk, dict) else "not_object"] += 1
    return Parsed(format=SourceFormat.CHATGPT, events=tuple(events), skipped=counted(skipped), taken_back=tuple(left))


def said(talk: Json, project: str | None, skipped: Counter[str], left: list[str]) -> Iterator[EventDraft]:
    """Yield what was said in one conversation, in order; `left` takes what the person said on branches beside it."""
    nodes: Json = talk["mapping"]
    parents = {key: clean(node.get("parent")) if isinstance(node, dict) else "" for key, node in nodes.items()}
    branch = open_branch(parents, clean(talk.get("current_node")), lambda key: newest(nodes[key]))
    on_branch = set(branch)
    session = Session(
        agent=AGENT, id=first(talk, "conversation_id", "id") or branch[0] if branch else "", project=project
    )
    if not session.id:
        skipped["empty"] += 1
        return
    when = millis(talk.get("create_time")) or millis(talk.get("update_time"))
    for key, node in nodes.items():
        message = part_of(node, "message")
        if key not in on_branch and (text := words(message, Counter())):
            skipped["branch"] += 1
            left += [text] if clean(part_of(message, "author").get("role")) == "user" else []
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
    parts = listed(parts if parts is not None else content.get("text"))
    heard = [spoken_of(part) for part in parts]
    skipped["image"] += sum(isinstance(part, dict) and said is None for part, said in zip(parts, heard, strict=True))
    text = "\n".join(filter(None, heard))
    skipped["empty"] += not text and not any(isinstance(part, dict) for part in parts)
    return text


def spoken_of(part: object) -> str | None:
    """Return the words of a part: what was typed, or said by voice; None for a picture, a file or a sound."""
    if not isinstance(part, dict):
        return clean(part)
    kind = clean(part.get("content_type"))
    if kind in VOICE:
        return clean(part.get("text"))
    return clean(part.get("text")) or None if kind in ("", "text") else None
