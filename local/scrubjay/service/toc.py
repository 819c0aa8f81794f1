"""The table of contents as a caller sees it: nodes are put together from what the projects in view have in a period.

Nothing of another project is read: what a period holds is stored for each project by itself, and merged here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.caller import Caller
from scrubjay.ingest import intake
from scrubjay.policy import MemoryPolicy, TocPolicy
from scrubjay.service.paging import check_times, cursor, cursor_text, page_limit
from scrubjay.service.references import References
from scrubjay.store import Queries, Seen, Store, StoredSegment
from scrubjay.toc import VERSION, periods, rollup
from scrubjay.toc.extraction import Outline, Passage
from scrubjay.toc.periods import Level, Node
from scrubjay_shared.clock import MAX_MILLIS, Millis
from scrubjay_shared.errors import InvalidError, NotFoundError
from scrubjay_shared.records import Grip, TocNode

AUTO_DAYS = ((2, Level.SEGMENT), (31, Level.DAY), (183, Level.WEEK), (1_100, Level.MONTH))
"""Up to how many days a period is shown at a level, where nobody says: about thirty nodes; longer ones by years."""

WHOLE_CHARS = 20_000
"""Of one event around a passage: more than anybody reads there. `events` gives the whole."""


def seen_by(view: access.View) -> Seen:
    """Return whose segments a view holds."""
    if not view.is_bounded:
        return Seen()
    return Seen(projects=frozenset({"", view.project or ""}), session_id=view.session_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One node as it is seen, before its words are read."""

    node: Node
    outline: Outline
    passages: Sequence[Passage]
    children: tuple[str, ...] = ()


class Toc:
    """Reads the table of contents of one store."""

    def __init__(self, store: Store, policy: MemoryPolicy, *, references: References) -> None:
        self._store = store
        self._policy = policy
        self._references = references

    async def toc(self, caller: Caller, request: api.TocRequest) -> api.TocResponse:
        """Return a node with its children. Raises InvalidError for no id of a node, NotFoundError for an empty one."""
        seen = seen_by(access.view(caller, project=request.project, session_id=request.session_id))
        node = periods.parse(periods.ROOT if request.id is None else intake.valid(request.id))
        limit = page_limit(self._policy, request.limit)
        start = (cursor(request.cursor) or (0, 0))[0]
        answer = await self._store.read(lambda q: _Reader(q, seen, self._policy.toc).node(node, start, limit))
        if answer is None:
            raise NotFoundError(f"nothing was said in {node.id}", hint=periods.HINT)
        notes = await self._references.notes_on(request.project)
        return replace(answer, notes=notes)

    async def timeline(self, caller: Caller, request: api.TimelineRequest) -> api.TimelineResponse:
        """Return the nodes of one level that have events in a period."""
        check_times(request.since, request.until)
        seen = seen_by(access.view(caller, project=request.project, session_id=request.session_id))
        level = None if request.level is None else level_of(request.level)
        limit = page_limit(self._policy, request.limit)
        start = (cursor(request.cursor) or (0, 0))[0]

        def work(q: Queries) -> api.TimelineResponse:
            reader = _Reader(q, seen, self._policy.toc)
            since, until = reader.bounds(request.since, request.until)
            chosen = level or _usual_level(since, until)
            found, more = reader.within(chosen, since, until, start, limit)
            return api.TimelineResponse(
                level=chosen.value,
                nodes=tuple(reader.told(found)),
                next=cursor_text((start + limit, 0)) if more else None,
                building=q.toc.count_stale(),
            )

        answer = await self._store.read(work)
        notes = await self._references.notes_on(request.project)
        return replace(answer, notes=notes)

    async def grip(self, caller: Caller, request: api.GripRequest) -> api.GripResponse:
        """Return a passage and what was said around it. Raises NotFoundError for one that is not there, or not seen."""
        for name, value in (("before", request.before), ("after", request.after)):
            most = self._policy.toc.around
            if not 0 <= value <= most:
                raise InvalidError(
                    f"{name} must be between 0 and {most}, got {value}", hint="scrubjay events pages through more"
                )
        ref = intake.valid(request.id)
        view = access.view(caller, project=request.project, session_id=request.session_id)
        place = periods.parse_grip(ref)
        grip = None
        if place is None:
            grip = await self._store.read(lambda q: q.grips.by_id(ref)) or await self._whole(ref, view)
            if grip is not None and grip.memory_id and view.is_bounded:
                owner = grip.memory_id
                memory = (await self._store.read(lambda q: q.memories.by_id([owner], chars=0))).get(owner)
                grip = grip if memory is not None and view.shows(memory) else None
        else:
            grip = _passage(ref, *place)
        answer = None if grip is None else await self._store.read(self._around(grip, request, view))
        if answer is None:
            raise NotFoundError(
                f"there is no passage {ref[:60]!r}",
                hint="scrubjay toc NODE lists passages of a node with their ids",
            )
        return answer

    async def _whole(self, ref: str, view: access.View) -> Grip | None:
        """Return the passage that is a whole event, which its id or the beginning of it names; None for no event."""
        event_id = await self._references.event(ref, view)
        if event_id is None:
            return None
        event = (await self._store.read(lambda q: q.events.by_id([event_id], chars=WHOLE_CHARS)))[event_id]
        return _passage(periods.grip_id(event_id, 0, len(event.text)), event_id, 0, len(event.text))

    def _around(
        self, grip: Grip, request: api.GripRequest, view: access.View
    ) -> Callable[[Queries], api.GripResponse | None]:
        def read(q: Queries) -> api.GripResponse | None:
            found = [
                event
                for event in q.events.around(
                    grip.event_id_start,
                    grip.event_id_end,
                    before=request.before,
                    after=request.after,
                    chars=WHOLE_CHARS,
                )
                if view.shows_event(event)
            ]
            ids = {event.id for event in found}
            if grip.event_id_start not in ids or grip.event_id_end not in ids:
                return None
            excerpt = grip.excerpt
            if not grip.memory_id:
                span = (grip.event_id_start, grip.span_start, grip.span_end)
                excerpt = q.toc.excerpts([span]).get(span, "")
                if len(excerpt) != grip.span_end - grip.span_start:
                    return None
            segment = q.toc.segments_of_events([grip.event_id_start]).get(grip.event_id_start)
            return api.GripResponse(
                id=grip.id,
                excerpt=excerpt,
                event_id_start=grip.event_id_start,
                event_id_end=grip.event_id_end,
                span_start=grip.span_start,
                span_end=grip.span_end,
                events=tuple(found),
                memory_id=grip.memory_id or None,
                segment=None if segment is None else periods.node_id(Level.SEGMENT, segment.id),
            )

        return read


def _passage(id_: str, event_id: str, start: int, end: int) -> Grip:
    """Return a place in an event, which no memory rests on."""
    return Grip(
        id=id_, memory_id="", event_id_start=event_id, event_id_end=event_id, span_start=start, span_end=end,
        excerpt="", source="toc", created_at=Millis(0),
    )  # fmt: skip


def level_of(name: str) -> Level:
    """Return the level of nodes that somebody names. Raises InvalidError for another word."""
    if name not in {*periods.PERIODS, Level.SEGMENT}:
        raise InvalidError(f"{name[:40]!r} is not a level", hint="levels: year, month, week, day, segment")
    return Level(name)


def _usual_level(since: Millis, until: Millis) -> Level:
    days = (until - since) / 86_400_000
    return next((level for most, level in AUTO_DAYS if days <= most), Level.YEAR)


class _Reader:
    """Reads nodes over one snapshot, as somebody sees them. Runs in a reader's thread."""

    def __init__(self, q: Queries, seen: Seen, policy: TocPolicy) -> None:
        self._q = q
        self._seen = seen
        self._policy = policy
        self._own = q.toc.of_own_session(seen)

    def node(self, node: Node, start: int, limit: int) -> api.TocResponse | None:
        """Return the fields of a TocResponse about a node; None where nothing of it is seen."""
        if node.level is Level.SEGMENT:
            return self._segment(node)
        level, keys = self._children(node)
        outlines = (
            self._outlines(Level.YEAR, keys) if node.level is Level.ROOT else self._outlines(node.level, [node.key])
        )
        if not outlines and node.level is not Level.ROOT:
            return None
        whole = rollup.merged(list(outlines.values()), self._policy) if outlines else _EMPTY
        if node.level is Level.DAY:
            segments = self._q.toc.segments_of_day(node.key, self._seen, limit=limit + 1, offset=start)
            below = [self._of_segment(one, self._policy.shown_in_list) for one in segments[:limit]]
            ids = [one.node.id for one in below]
            more = len(segments) > limit
        else:
            found = self._outlines(level, keys) if node.level is not Level.ROOT else outlines
            ids = [periods.node_id(level, key) for key in keys if key in found]
            page = [key for key in keys if key in found][start : start + limit]
            below = [self._of_period(level, key, found[key], self._policy.shown_in_list) for key in page]
            more = len(ids) > start + limit
        own = self._of_period(node.level, node.key, whole, self._policy.bullets, tuple(ids))
        told = self.told([own, *below])
        before, after = self._beside(node)
        return api.TocResponse(
            node=told[0],
            level=node.level.value,
            events=whole.events,
            segments=whole.segments,
            sessions=whole.sessions,
            parents=tuple(each.id for each in self._parents(node)),
            previous=before,
            following=after,
            children=tuple(told[1:]),
            next=cursor_text((start + limit, 0)) if more else None,
            building=self._q.toc.count_stale(),
        )

    def _segment(self, node: Node) -> api.TocResponse | None:
        segment = self._q.toc.segments([node.key]).get(node.key)
        if segment is None or not self._seen.shows(segment):
            return None
        before, after = self._q.toc.beside(segment, self._seen)
        return api.TocResponse(
            node=self.told([self._of_segment(segment, self._policy.bullets)])[0],
            level=Level.SEGMENT.value,
            events=segment.outline.events,
            segments=1,
            sessions=segment.outline.sessions,
            parents=(periods.node_id(Level.DAY, segment.day),),
            previous=None if before is None else periods.node_id(Level.SEGMENT, before),
            following=None if after is None else periods.node_id(Level.SEGMENT, after),
            session_id=segment.session_id,
            project=segment.project or None,
            building=self._q.toc.count_stale(),
        )

    def _children(self, node: Node) -> tuple[Level, Sequence[str]]:
        if node.level is Level.ROOT:
            years = {*self._q.toc.keys(Level.YEAR, self._seen), *(one.day[:4] for one in self._own)}
            return Level.YEAR, sorted(years)
        return (Level.SEGMENT, ()) if node.level is Level.DAY else periods.child_keys(node.level, node.key)

    def _parents(self, node: Node) -> tuple[Node, ...]:
        if node.level is Level.ROOT:
            return ()
        above = periods.parents(node.level, node.key)
        if len(above) > 1:  # a week in which one of the two months has nothing is not shown in that
            there = self._outlines(Level.MONTH, [each.key for each in above])
            return tuple(each for each in above if each.key in there)
        return above

    def _beside(self, node: Node) -> tuple[str | None, str | None]:
        if node.level is Level.ROOT:
            return None, None
        before, after = self._q.toc.keys_beside(node.level, node.key, self._seen)
        own = {periods.keys_of(one.day)[node.level] for one in self._own}
        before = max([key for key in (*own, before) if key is not None and key < node.key], default=None)
        after = min([key for key in (*own, after) if key is not None and key > node.key], default=None)
        return (
            None if before is None else periods.node_id(node.level, before),
            None if after is None else periods.node_id(node.level, after),
        )

    def _outlines(self, level: Level, keys: Collection[str]) -> dict[str, Outline]:
        """Return what is seen of some periods, by key; without those of which nothing is."""
        found = self._q.toc.periods(level, keys, self._seen)
        for one in self._own:
            if (key := periods.keys_of(one.day)[level]) in keys:
                found.setdefault(key, []).append(one.outline)
        return {key: rollup.merged(parts, self._policy) for key, parts in found.items()}

    def bounds(self, since: Millis | None, until: Millis | None) -> tuple[Millis, Millis]:
        """Return a period with the ends that nobody gave: those of what is there."""
        if since is not None and until is not None:
            return since, until
        found = list(self._outlines(Level.YEAR, self._children(Node(Level.ROOT, ""))[1]).values())
        first = min((one.start for one in found), default=Millis(0))
        last = max((one.end for one in found), default=Millis(0))
        return first if since is None else since, Millis(min(last + 1, MAX_MILLIS)) if until is None else until

    def within(self, level: Level, since: Millis, until: Millis, start: int, limit: int) -> tuple[list[Found], bool]:
        """Return a page of the nodes of a level that have events in a period, and whether there are more."""
        count = self._policy.shown_in_list
        if level is Level.SEGMENT:
            segments = self._q.toc.segments_within(since, until, self._seen, limit=limit + 1, offset=start)
            return [self._of_segment(one, count) for one in segments[:limit]], len(segments) > limit
        own = {periods.keys_of(one.day)[level] for one in self._own if one.start < until and one.end >= since}
        keys = sorted({*self._q.toc.keys_within(level, since, until, self._seen), *own})
        page = keys[start : start + limit]
        outlines = self._outlines(level, page)
        return [self._of_period(level, key, outlines[key], count) for key in page], len(keys) > start + limit

    def _of_period(self, level: Level, key: str, outline: Outline, count: int, children: tuple[str, ...] = ()) -> Found:
        passages = rollup.chosen(outline, count, self._policy)
        return Found(node=Node(level, key), outline=outline, passages=passages, children=children)

    def _of_segment(self, segment: StoredSegment, count: int) -> Found:
        passages = rollup.chosen(segment.outline, count, self._policy)
        return Found(node=Node(Level.SEGMENT, segment.id), outline=segment.outline, passages=passages)

    def told(self, found: Sequence[Found]) -> list[TocNode]:
        """Return nodes with their words, which are read from the events."""
        spans = {one[:3] for each in found for one in each.passages}
        spans |= {each.outline.title[:3] for each in found if each.outline.title is not None}
        words = self._q.toc.excerpts(spans)
        told = self._q.toc.told([each.node.key for each in found if each.node.level is Level.SEGMENT])
        return [self._node(each, words, told.get(each.node.key, ())) for each in found]

    def _node(self, found: Found, words: dict[tuple[str, int, int], str], told: Sequence[tuple[str, str]]) -> TocNode:
        outline = found.outline
        bullets = [one for one in found.passages if one[:3] in words]
        title = periods.title(found.node.level, found.node.key) if found.node.level is not Level.SEGMENT else ""
        if outline.title is not None:
            title = cut_short(words.get(outline.title[:3], ""), self._policy.title_chars)
        title = next((given for given, _ in told if given), title)
        summary = cut_short(" ".join(given for _, given in told if given), self._policy.told_chars)
        return TocNode(
            id=found.node.id,
            title=title or rollup.counted(outline.events, "event"),
            summary=summary or rollup.summary(outline, self._policy),
            start=outline.start,
            end=outline.end,
            bullets=tuple(words[one[:3]] for one in bullets),
            grip_ids=tuple(periods.grip_id(*one[:3]) for one in bullets),
            keywords=tuple(one.word for one in outline.keywords[: self._policy.keywords]),
            children=found.children,
            agents=outline.agents,
            version=VERSION,
        )


_EMPTY = Outline(start=Millis(0), end=Millis(0), events=0, segments=0, sessions=0, agents=())


def cut_short(text: str, chars: int) -> str:
    """Return a text on one line, cut after a word where it is longer than `chars`.

    >>> cut_short("one  two three", 9)
    'one two…'
    """
    line = " ".join(text.split())
    return line if len(line) <= chars else line[: chars - 1].rsplit(" ", 1)[0].rstrip(",;:.-–— ") + "…"
