"""From any payload of any host to events, by the tables of `meanings`. Pure, and total: it never raises.

What is stored of a turn is what the person typed, what tools answered (bounded), and the agent's last words. Only what
a person typed is trusted as theirs; what a program wrote in their name, and what memory itself told, is not stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from scrubjay.hosts.bounds import bounded
from scrubjay.hosts.captured import Captured
from scrubjay.hosts.fields import anything, at, failed, heading, opened, printed, said, word
from scrubjay.hosts.meanings import (
    ABOUT,
    ANSWERS,
    CALLS,
    FOLDERS,
    INPUTS,
    MADE_BY_PROGRAM,
    MEANINGS,
    NAMES,
    NOT_PERSONS,
    OUTPUTS,
    PECULIAR,
    PLAIN,
    PROMPTS,
    SERVERS,
    SESSIONS,
    SILENT_TOOLS,
    SUMMARIES,
    TIMES,
    TOOLS,
    TRANSCRIPTS,
    TURNS,
    Meaning,
    folded,
    host_name,
)
from scrubjay.importers.echo import is_our_command, is_our_tool, without_echo
from scrubjay.importers.forms import Answered, is_form
from scrubjay.importers.forms import answered as form_answers
from scrubjay.importers.parsing import clean, digest, millis
from scrubjay.importers.typed import typed
from scrubjay.policy import DEFAULT
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventDraft, EventType, Json, Role, Trust

NAME_CHARS = DEFAULT.limits.max_name_chars
LARGEST_NUMBER = 2**62
"""A number beyond it is no time: it would overflow what reads times."""


REFUSED = frozenset(("not_an_object", "unknown_event", "no_session", "no_prompt", "unreadable"))
"""Reasons for which nothing is stored of what may have held words: the person is told how often."""

REPEAT_MS = 60_000
"""A payload without an id and a time is the same delivery within a minute, and another one after it, as in `intake`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One payload with what is known beside it: which host and event, and when it was seen."""

    host: str
    session_id: str
    payload: Mapping[str, Any]
    ts: Millis | None
    utc_offset: int

    def word(self, paths: tuple[str, ...]) -> str:
        """Return the first string at one of the paths, shortened to what a name may have."""
        return word(self.payload, paths)[:NAME_CHARS]

    def draft(
        self,
        event: EventType,
        role: Role,
        text: str,
        *,
        trust: Trust,
        core: str | None = None,
        **metadata: Any,
    ) -> EventDraft:
        """Return an event. Its key is made of what a second delivery of the same event would repeat.

        `core` is that part of the text which a host that delivers in two spellings spells alike; all of it when None.
        """
        about: Json = {key: found for key, paths in ABOUT.items() if (found := self.word(paths))} | metadata
        when = moment(anything(self.payload, TIMES))
        call, turn = self.word(CALLS), self.word(TURNS)
        window = "" if call or turn or when is not None or self.ts is None else str(self.ts // REPEAT_MS)
        which = [str(about.get(key, "")) for key in ("source", "trigger", "phase", "helper_id")]
        parts = [
            self.session_id,
            event.value,
            call,
            turn,
            str(when or ""),
            window,
            *which,
            text if core is None else core,
        ]
        known = bool(call or turn or window or when is not None)
        return EventDraft(
            agent=self.host,
            session_id=self.session_id,
            type=event,
            role=role,
            text=text,
            ts=self.ts if when is None else when,
            utc_offset=self.utc_offset,
            trust=trust,
            metadata=about,
            dedupe_key=f"{self.host}/{digest(*parts)}" if known else None,
        )


def session_of(payload: Mapping[str, Any]) -> str:
    """Return the session that a payload names, as its events bear it; "" where it names none."""
    session = word(payload, SESSIONS)
    if not session and isinstance(found := anything(payload, SESSIONS), Mapping | list):
        session = word(found, ("id", "session_id", "0")) or digest(json.dumps(found, sort_keys=True))
    return session if len(session) <= NAME_CHARS else digest(session)


def normalise(
    host: str,
    payload: Any,
    *,
    event: str | None = None,
    session_id: str | None = None,
    cwd: str | None = None,
    ts: Millis | None = None,
    utc_offset: int = 0,
) -> Captured:
    """Return what a host's payload says, for any JSON value; never raises.

    `event` is the name that the hook was registered for: Copilot CLI's payloads do not name theirs. `session_id` and
    `cwd` stand in where the payload has none. `ts` is when the hook saw it (UTC milliseconds), `utc_offset` the
    machine's (minutes). The drafts have no project: which one a folder belongs to, this module cannot see.
    """
    known = host_name(clean(host)[:NAME_CHARS]) or "agent"
    found: Mapping[str, Any] = payload if isinstance(payload, Mapping) else {}
    names = [name for name in (word(found, NAMES), clean(event)) if name]
    # A name that the payload garbles, or that is another's, yields to the one that the hook was registered for.
    kind = next((name for name in names if folded(name) in MEANINGS), names[0] if names else "")[:NAME_CHARS]
    given = clean(session_id)
    captured = Captured(
        host=known,
        kind=kind,
        session_id=session_of(found) or (given if len(given) <= NAME_CHARS else digest(given)),
        cwd=word(found, FOLDERS) or clean(cwd) or None,
    )
    meaning = MEANINGS.get(folded(kind))
    if not isinstance(payload, Mapping):
        return replace(captured, dropped="not_an_object")
    if meaning is None or meaning is Meaning.NOTHING:
        return replace(captured, dropped="not_captured" if meaning else "unknown_event")
    if not captured.session_id:
        return replace(captured, dropped="no_session")
    told = Told(host=known, session_id=captured.session_id, payload=found, ts=ts, utc_offset=utc_offset)
    outcome = READERS[meaning](told)
    if isinstance(outcome, str):
        path = word(found, TRANSCRIPTS) if outcome == "no_text" else ""
        wanted = PECULIAR.get(known, PLAIN).words_in_transcript
        return replace(captured, dropped=outcome, transcript=path if wanted and path else None)
    answers = meaning in PECULIAR.get(known, PLAIN).context and not helps(told)
    context: dict[Meaning, Any] = {Meaning.START: "session_start", Meaning.PROMPT: "prompt"}
    drafts = outcome if isinstance(outcome, tuple) else (outcome,)
    return replace(captured, drafts=drafts, context=context.get(meaning) if answers else None)


def completed(captured: Captured, data: bytes) -> Captured:
    """Return what was captured with the last words of the agent, read from the end of the transcript that it names.

    `data` is the file's end, and may begin amid a line. Without words in it, `captured` comes back as it was.
    """
    for line in reversed(data.splitlines()):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if word(record, ("type",)) == "user.message":
            break  # the turn had no words
        text = shown(said(at(record, "data.content"))) if word(record, ("type",)) == "assistant.message" else ""
        if text:
            told = Told(
                host=captured.host,
                session_id=captured.session_id,
                payload={"timestamp": at(record, "timestamp"), "turn_id": at(record, "id")},
                ts=None,
                utc_offset=0,
            )
            draft = told.draft(EventType.ASSISTANT_MESSAGE, Role.ASSISTANT, text, trust=Trust.AGENT)
            return replace(captured, drafts=(draft,), dropped=None)
    return captured


def moment(sent: Any) -> Millis | None:
    """Return a time that a host sent; None for none, or for a number that is no time."""
    huge = isinstance(sent, int | float) and not -LARGEST_NUMBER < sent < LARGEST_NUMBER
    return None if huge else millis(sent)


def helps(told: Told) -> bool:
    """Say whether this happened within a helper of the agent, which the agent speaks to and no person."""
    return bool(word(told.payload, ("agent_id", "agentId", "parentID", "info.parentID")))


def shown(text: str) -> str:
    """Return words without what hooks added to them, no longer than an event may be."""
    return without_echo(bounded(without_echo(text), DEFAULT.limits.spoken_chars)).strip()


def started(told: Told) -> EventDraft | str:
    """Return the beginning of a session; a helper's is none."""
    return "subagent" if helps(told) else told.draft(EventType.SESSION_START, Role.SYSTEM, "", trust=Trust.AGENT)


def prompted(told: Told) -> EventDraft | str:
    """Return what the person typed."""
    raw = next((text for path in PROMPTS if (text := said(at(told.payload, path)))), "")
    text = shown(typed(without_echo(raw)))
    if helps(told):
        return "subagent"
    if told.word(("source",)) in NOT_PERSONS or text.startswith(MADE_BY_PROGRAM):
        return "machine_prompt"
    if not text:
        return "recalled" if raw else wordless(told.payload)
    return told.draft(EventType.USER_MESSAGE, Role.USER, text, trust=Trust.USER)


def wordless(payload: Mapping[str, Any]) -> str:
    """Return why a prompt has no words: it has none, pictures perhaps, or they stand where nobody looks for them."""
    found = [value for path in PROMPTS if (value := at(payload, path)) is not None]
    if not found:
        return "no_prompt"
    return "empty" if all(isinstance(value, str | list) for value in found) else "unreadable"


def used(told: Told) -> tuple[EventDraft, ...] | EventDraft | str:
    """Return what a tool answered, headed by what it was asked; of a form, what the agent asked and the person said."""
    tool, given = told.word(TOOLS), opened(anything(told.payload, INPUTS))
    if is_our_tool(tool, told.word(SERVERS)) or is_our_command(given):
        return "recalled"
    if tool.casefold() in SILENT_TOOLS:
        return "not_captured"
    if helps(told):
        return "subagent"
    result = anything(told.payload, OUTPUTS)
    if is_form(tool, told.word(SERVERS)) and (found := form_answers(given, opened(result), printed(result))):
        return tuple(draft for one in found for draft in filled_in(told, one))
    raw = printed(result)
    output = bounded(without_echo(raw).strip(), DEFAULT.limits.output_chars)
    if not output:
        return "recalled" if raw else "empty"
    about: Json = {"tool": tool} if tool else {}
    if call := told.word(CALLS):
        about["call_id"] = call
    if failed(told.payload):
        about["is_error"] = True
    title = heading(tool, given)
    text = without_echo(f"{title}\n{output}").strip() if title else output
    return told.draft(EventType.TOOL_RESULT, Role.TOOL, text, trust=Trust.UNTRUSTED, core=output, **about)


def filled_in(told: Told, one: Answered) -> Iterator[EventDraft]:
    """Yield a question of a form as the agent's words, and the answer as what the person typed: the host says so."""
    answer = shown(one.answer)
    if answer:
        yield told.draft(EventType.ASSISTANT_MESSAGE, Role.ASSISTANT, shown(one.asked), trust=Trust.AGENT)
        core = f"{one.question}\n{answer}"  # "Yes" may answer two questions of one form
        yield told.draft(EventType.USER_MESSAGE, Role.USER, answer, trust=Trust.USER, core=core)


def failing(told: Told) -> tuple[EventDraft, ...] | EventDraft | str:
    """Return what a tool that failed answered."""
    outcome = used(told)
    if isinstance(outcome, EventDraft):
        return replace(outcome, metadata=outcome.metadata | {"is_error": True})
    return outcome


def answered(told: Told) -> EventDraft | str:
    """Return the agent's last words of a turn."""
    text = shown(next((text for path in ANSWERS if (text := said(at(told.payload, path)))), ""))
    if helps(told):
        return "subagent"
    return told.draft(EventType.ASSISTANT_MESSAGE, Role.ASSISTANT, text, trust=Trust.AGENT) if text else "no_text"


def helped(told: Told) -> EventDraft | str:
    """Return what a helper found. One without a type is Claude Code's own, which writes the summary of a compaction."""
    if told.host == "claude-code" and not told.word(("agent_type",)):
        return "not_captured"
    text = shown(next((text for path in ANSWERS if (text := said(at(told.payload, path)))), ""))
    return told.draft(EventType.SUBAGENT_STOP, Role.ASSISTANT, text, trust=Trust.AGENT) if text else "no_text"


def compacting(told: Told) -> EventDraft | str:
    """Return that the context is about to be compacted."""
    return told.draft(EventType.COMPACTION, Role.SYSTEM, "", trust=Trust.AGENT, phase="before")


def compacted(told: Told) -> EventDraft | str:
    """Return the summary that a compaction left of the context."""
    text = shown(word(told.payload, SUMMARIES))
    return told.draft(EventType.COMPACTION, Role.SYSTEM, text, trust=Trust.AGENT, phase="after")


def bare(event: EventType) -> Callable[[Told], EventDraft | str]:
    """Return a reader of events that say no more than that they happened."""
    return lambda told: told.draft(event, Role.SYSTEM, "", trust=Trust.AGENT)


READERS: MappingProxyType[Meaning, Callable[[Told], tuple[EventDraft, ...] | EventDraft | str]] = MappingProxyType(
    {
        Meaning.START: started,
        Meaning.PROMPT: prompted,
        Meaning.TOOL: used,
        Meaning.FAILURE: failing,
        Meaning.ANSWER: answered,
        Meaning.COMPACTING: compacting,
        Meaning.COMPACTED: compacted,
        Meaning.HELPER_START: bare(EventType.SUBAGENT_START),
        Meaning.HELPER_STOP: helped,
        Meaning.END: bare(EventType.SESSION_END),
    }
)
"""How the event of each meaning is read: the events to store, or why there is none."""
