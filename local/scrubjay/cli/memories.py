"""The commands about memories and what was said: one verb each, its answer shown."""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, times
from scrubjay.cli.lazy import Later
from scrubjay.cli.output import Output
from scrubjay_shared.errors import InvalidError, ScrubjayError
from scrubjay_shared.records import Kind, Layer, MemoryDraft, MemoryType, Scope

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Mapping

    from scrubjay.cli import render
else:
    render = Later("scrubjay.cli.render")

DEVICE_NAMES = "scrubjay.device_names"
"""The entry point group of functions from settings to names of devices by id: sync announces one."""


def add(line: Namespace) -> None:
    """Remember something."""
    out = Output.of(line)
    scope, resource = _belongs(line)
    draft = MemoryDraft(
        content=invocation.words(line.text, "what to remember"),
        name=line.name,
        aliases=tuple(line.aliases),
        kind=Kind(line.kind),
        type=MemoryType(line.type),
        scope=scope,
        resource_id=resource,
        layer=Layer(line.layer),
        salience=line.salience,
        topic=line.topic,
    )
    with invocation.store(line) as door:
        entry: api.Entry = door.call("add", draft)
        out.answer(entry, lambda: render.changed("added" if entry.created else "already there:", entry))
        invocation.embedded(door)


def _belongs(line: Namespace) -> tuple[Scope, str | None]:
    if line.session is not None:
        return Scope.SESSION, line.session
    if line.project is not None:
        return Scope.PROJECT, line.project
    return Scope.USER, None


def recall(line: Namespace) -> None:
    """Ask a question."""
    out = Output.of(line)
    today = invocation.now()
    request = api.RecallRequest(
        query=invocation.words(line.query, "the question"),
        limit=line.limit,
        mode=api.Mode(line.mode),
        project=line.project,
        session_id=line.session,
        scope=None if line.scope is None else Scope(line.scope),
        agent=line.agent,
        since=times.since(line.since, today),
        until=times.until(line.until, today),
        types=tuple(MemoryType(name) for name in line.types),
        kinds=tuple(dict.fromkeys(line.kinds)) or ("memory", "event"),
        min_salience=line.min_salience,
        max_tokens=line.max_tokens,
        neighbours=line.neighbours,
        rerank=line.rerank,
    )
    with invocation.store(line) as door:
        answer: api.RecallAnswer = door.call("recall", request)
    out.answer(answer, lambda: render.recall(answer, why=line.why))
    if not out.json:
        out.remark(render.recalled(answer))


def get(line: Namespace) -> None:
    """Show one memory."""
    out = Output.of(line)
    with invocation.store(line) as door:
        entry: api.Entry = door.call("get", _ref(line))
    out.answer(entry, lambda: render.entry(entry))


def list_(line: Namespace) -> None:
    """Page through memories."""
    out = Output.of(line)
    today = invocation.now()
    request = api.ListRequest(
        limit=line.limit,
        cursor=line.cursor,
        type=None if line.type is None else MemoryType(line.type),
        kind=None if line.kind is None else Kind(line.kind),
        layer=None if line.layer is None else Layer(line.layer),
        scope=None if line.scope is None else Scope(line.scope),
        project=line.project,
        session_id=line.session,
        since=times.since(line.since, today),
        until=times.until(line.until, today),
    )
    with invocation.store(line) as door:
        answer: api.ListAnswer = door.call("list", request)
    out.answer(answer, lambda: render.entries(answer.entries))
    _notes(out, answer.notes)
    _more(out, answer.next)


def update(line: Namespace) -> None:
    """Rewrite a memory or its fields."""
    out = Output.of(line)
    request = api.UpdateRequest(
        ref=line.ref,
        content=invocation.words(line.text, "the new words") if line.text else None,
        type=None if line.type is None else MemoryType(line.type),
        salience=line.salience,
        topic=line.topic,
        layer=None if line.layer is None else Layer(line.layer),
        project=line.project,
        session_id=line.session,
    )
    if all(getattr(request, name) is None for name in ("content", "type", "salience", "topic", "layer")):
        raise InvalidError("nothing to change", hint="give new words, or --type, --salience, --topic or --layer")
    with invocation.store(line) as door:
        entry: api.Entry = door.call("update", request)
        out.answer(entry, lambda: render.changed("updated", entry))
        invocation.embedded(door)


def rename(line: Namespace) -> None:
    """Give a memory another name."""
    out = Output.of(line)
    with invocation.store(line) as door:
        entry: api.Entry = door.call("rename", api.RenameRequest(ref=line.ref, name=line.name))
    out.answer(entry, lambda: render.changed("renamed", entry))


def alias(line: Namespace) -> None:
    """Give a memory one more name, or take it away."""
    out = Output.of(line)
    request = api.AliasRequest(ref=line.ref, alias=line.alias, remove=line.remove)
    with invocation.store(line) as door:
        entry: api.Entry = door.call("alias", request)
    out.answer(entry, lambda: render.changed("alias removed from" if line.remove else "alias added to", entry))


def forget(line: Namespace) -> None:
    """Erase a memory, and the words it was read from."""
    out = Output.of(line)
    request = api.ForgetRequest(ref=line.ref, keep_sources=line.keep_sources)
    with invocation.store(line) as door:
        answer: api.ForgetAnswer = door.call("forget", request)
    out.answer(answer, lambda: render.forgotten(answer))


def why(line: Namespace) -> None:
    """Show where a memory comes from."""
    out = Output.of(line)
    with invocation.store(line) as door:
        answer: api.WhyAnswer = door.call("why", _ref(line))
    out.answer(answer, lambda: render.why(answer))


def conflicts(line: Namespace) -> None:
    """List the conflicts, after settling what was asked for."""
    out = Output.of(line)
    with invocation.store(line) as door:
        if line.keep is not None:
            ref, field, version = line.keep
            request = api.ResolveRequest(
                ref=ref,
                field=field,
                version=None if version == "shown" else version,
                project=line.project,
                session_id=line.session,
            )
            door.call("resolve", request)
            invocation.embedded(door)
        answer: api.ConflictsAnswer = door.call(
            "conflicts", api.ConflictsRequest(project=line.project, session_id=line.session)
        )
    out.answer(answer, lambda: render.conflicts(answer, _device_names(line, out) if answer.conflicts else {}))


def _device_names(line: Namespace, out: Output) -> Mapping[str, str]:
    """Return what the devices that wrote here are called, by id, as far as another package knows."""
    names: dict[str, str] = {}
    for found in importlib.metadata.entry_points(group=DEVICE_NAMES):
        try:
            names |= found.load()(invocation.settings_of(line))
        except (ScrubjayError, ModuleNotFoundError) as error:
            out.remark(f"devices are shown by their ids, because their names cannot be read: {error}")
    return names


def context(line: Namespace) -> None:
    """Show what an agent loads at its start, after setting what was asked for."""
    out = Output.of(line)
    with invocation.store(line) as door:
        for verb, pairs in (("set_identity", line.identity), ("set_active", line.active)):
            for key, value in pairs:
                door.call(verb, api.SlotRequest(key=key, value=value))
        answer: api.ContextAnswer = door.call(
            "context", api.ContextRequest(project=line.project, session_id=line.session)
        )
    out.answer(answer, lambda: render.context(answer))
    _notes(out, answer.notes)
    if not out.json:
        out.remark(render.counted(answer.tokens, "token") + (f" · cut: {', '.join(answer.cut)}" if answer.cut else ""))


def events(line: Namespace) -> None:
    """Page through what was said."""
    out = Output.of(line)
    today = invocation.now()
    request = api.EventsRequest(
        session_id=line.of,
        project=line.project,
        since=times.since(line.since, today),
        until=times.until(line.until, today),
        limit=line.limit,
        cursor=line.cursor,
    )
    with invocation.store(line) as door:
        answer: api.EventsAnswer = door.call("events", request)
    out.answer(answer, lambda: render.events(answer.events))
    _notes(out, answer.notes)
    _more(out, answer.next)


def sessions(line: Namespace) -> None:
    """List the sessions."""
    out = Output.of(line)
    with invocation.store(line) as door:
        answer: api.SessionsAnswer = door.call("sessions", api.Nothing())
    out.answer(answer, lambda: render.sessions(answer.sessions))


def stats(line: Namespace) -> None:
    """Show counts and sizes."""
    out = Output.of(line)
    with invocation.store(line) as door:
        answer: api.StatsAnswer = door.call("stats", api.Nothing())
    out.answer(answer, lambda: render.stats(answer))


def _ref(line: Namespace) -> api.RefRequest:
    return api.RefRequest(ref=line.ref, project=line.project, session_id=line.session)


def _notes(out: Output, notes: Iterable[str]) -> None:
    """Say what stands in an answer's `notes`, where the answer itself is not JSON that holds them."""
    if not out.json:
        for note in notes:
            out.remark(note)


def _more(out: Output, cursor: str | None) -> None:
    if cursor is not None and not out.json:
        out.remark(f"there are more: add --cursor {cursor} to see the next page")
