"""Files written by people: markdown becomes notes under its headings, plain text becomes a session of paragraphs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, count

import yaml

from scrubjay.importers.parsing import Parsed, SourceFormat, clean, counted, digest, millis, path_of, prose, rows
from scrubjay.policy import DEFAULT
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventDraft, EventType, Json, Kind, MemoryDraft, Role, Scope, Trust

HEADING = re.compile(r" {0,3}(?P<level>#{1,6})(?:[ \t]+(?P<title>.*?))?(?:[ \t]+#+)?[ \t]*")
UNDERLINE = re.compile(r"=+[ \t]*")  # only the level-1 underline: a row of dashes is more often a rule than a heading
FENCE = re.compile(r" {0,3}(?P<mark>`{3,}(?!.*`)|~{3,})")
KEY = re.compile(r"(?P<key>[A-Za-z_][\w -]*?)[ \t]*:(?:[ \t]+(?P<value>.*))?")
RULES = re.compile(r"[-*_=\s]*")
"""What stands where a document only draws lines."""

TOLD_APART = frozenset(("title", "name", "aliases", "alias", "permalink", "tags", "created", "date"))
MAX_HEADING_CHARS = 4_096
"""A longer line is not read as a heading or key: to match one of megabytes keeps other threads waiting."""

JOINED_LINES = 4_096
PATH_MARK = " / "

Frontmatter = dict[str, tuple[str, ...]]


@dataclass(slots=True)
class Section:
    """A heading, where it stands (the headings above it and itself), and the lines below it."""

    level: int
    path: tuple[str, ...]
    body: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The lines below the heading, outer blank lines removed."""
        starts = range(0, len(self.body), JOINED_LINES)
        return "\n".join(["\n".join(self.body[start : start + JOINED_LINES]) for start in starts]).strip()


def imported(
    content: str,
    *,
    project: str | None,
    metadata: Json,
    name: str | None = None,
    aliases: tuple[str, ...] = (),
    kind: Kind = Kind.STORED,
    created_at: Millis | None = None,
) -> MemoryDraft:
    """Return a memory as imports land: trusted as an import and never always loaded; a project's, if one was given."""
    return MemoryDraft(
        content=content,
        name=name,
        aliases=aliases,
        kind=kind,
        scope=Scope.PROJECT if project else Scope.USER,
        resource_id=project,
        trust=Trust.IMPORT,
        created_at=created_at,
        metadata={key: value for key, value in metadata.items() if value},
    )


def short_name(name: str) -> str:
    """Return a name in one line and within the limit for names; a longer one ends in an ellipsis."""
    limit = DEFAULT.limits.max_name_chars
    line = " ".join(name.split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def numbered(name: str, ending: str) -> str:
    """Return a name with what tells it from an equal one, within the limit for names."""
    return name[: DEFAULT.limits.max_name_chars - len(ending)] + ending


def source_key(format: SourceFormat, project: str | None, file: str, *parts: str) -> str:  # noqa: A002 - as in `parse`
    """Return the key of a place in a file: whom it is for, which file, and where in it.

    The 2 tells it from keys that held neither the project nor the folder (see `importers.reconcile`).
    """
    return f"{format}/2:{digest(project or '', file, *parts)}"


def parse_text(name: str, data: bytes, *, project: str | None) -> Parsed:
    """Read plain text: each paragraph is a note of one session, named by the file and its content.

    A paragraph's key is its words, which of several equal ones it is, and whom it is for: an edited file adds only what
    is new. Nobody in a conversation said it: its role is the system's, so that "I" in it is not the person.
    Raises InvalidError when it is not UTF-8 text.
    """
    text = prose(name, data)
    file = path_of(name).name
    session = f"text/{file}/{digest(text, *([project] if project else []))[:12]}"
    times_seen: Counter[str] = Counter()
    events = []
    earlier: dict[str, str] = {}
    for paragraph in filter(None, map(clean, paragraphs(text))):
        times_seen[paragraph] += 1
        key = earlier_key = f"text:{digest(file, paragraph, str(times_seen[paragraph]))}"
        if project:
            key = f"text:{digest(file, paragraph, str(times_seen[paragraph]), project)}"
            earlier[key] = earlier_key
        events.append(
            EventDraft(
                agent="import",
                session_id=session,
                type=EventType.NOTE,
                role=Role.SYSTEM,
                text=paragraph,
                project=project,
                trust=Trust.IMPORT,
                metadata={"source": file},
                dedupe_key=key,
            )
        )
    return Parsed(format=SourceFormat.TEXT, events=tuple(events), earlier_keys=earlier)


def paragraphs(text: str) -> Iterator[str]:
    """Yield what stands between blank lines, with the white space around it, and some that hold nothing."""
    start = end = 0
    for row in rows(text):
        if not row.strip(" \t"):
            yield text[start:end]
            start = end
        end += len(row) + 1
    yield text[start:]


def parse_markdown(name: str, data: bytes, *, project: str | None, place: str | None = None) -> Parsed:
    """Read markdown. A file with frontmatter is one note of a vault; one without is a note for each heading.

    Names: the title (frontmatter, else the leading level-1 heading, else the file's name), then the headings down to
    the section. `aliases` and `permalink` of the frontmatter resolve to the note. A note's key is whom it is for, the
    file (`place`, or `name` where that is not known) and the headings. Raises InvalidError when it is not UTF-8 text.
    """
    text = prose(name, data)
    path = path_of(name)
    about, body = frontmatter(text)
    sections = list(sections_of(body))
    lead = next((s for s in sections if s.level), None)
    has_title = lead is not None and lead.level == 1 and not sections[0].text
    heading = lead.path[0] if lead and has_title else ""
    title = next(filter(None, (*about.get("title", ()), *about.get("name", ()), heading, path.stem)), "note")
    created = next((when for key in ("created", "date") for v in about.get(key, ()) if (when := day(v))), None)
    skipped: Counter[str] = Counter()
    parts = [(below_title(s, heading), s.text) for s in sections]
    notes: list[tuple[tuple[str, ...], str]] = [((), body.strip())] if about else parts
    memories = []
    taken: set[str] = set()
    for (headings, content), below in zip(notes, (*(headings for headings, _ in notes[1:]), ()), strict=True):
        if RULES.fullmatch(content):
            # A heading that only holds others lives on in their names, and the text before the first one may be none.
            skipped["empty"] += bool(headings) and below[: len(headings)] != headings
            continue
        called = short_name(PATH_MARK.join((title, *headings)))
        endings = chain(("",), (f" ({n})" for n in count(2)))
        again = next(end for end in endings if numbered(called, end) not in taken)
        taken.add(numbered(called, again))
        aliases = (*about.get("aliases", ()), *about.get("alias", ()), *about.get("permalink", ()))
        memories.append(
            imported(
                content,
                name=numbered(called, again),
                aliases=tuple(dict.fromkeys(short_name(alias) for alias in aliases if alias != called)),
                kind=Kind.NOTE,
                project=project,
                created_at=created,
                metadata={
                    "source_key": source_key(
                        SourceFormat.MARKDOWN, project, place or path.as_posix(), *headings, again
                    ),
                    "source": path.as_posix(),
                    "path": place,
                    "heading": PATH_MARK.join(headings),
                    "tags": list(about.get("tags", ())),
                    "frontmatter": {key: ", ".join(v) for key, v in about.items() if v and key not in TOLD_APART},
                },
            )
        )
    return Parsed(format=SourceFormat.MARKDOWN, memories=tuple(memories), skipped=counted(skipped))


def below_title(section: Section, title: str) -> tuple[str, ...]:
    """Return where a section stands below the file's title."""
    return section.path[1:] if title and section.path[:1] == (title,) else section.path


def sections_of(body: str) -> Iterator[Section]:
    """Yield the text before the first heading, then each section. A `#` in a code fence does not begin one."""
    section = Section(level=0, path=())
    above: list[tuple[int, str]] = []
    fence = ""
    for line in rows(body):
        mark = FENCE.match(line)
        if fence:
            # A fence closes with at least as many of the same mark, alone on its line.
            if mark and mark["mark"].startswith(fence) and line.strip() == mark["mark"]:
                fence = ""
            section.body.append(line)
            continue
        if mark:
            fence = mark["mark"]
        heading = HEADING.fullmatch(line) if len(line) <= MAX_HEADING_CHARS else None
        level, title = (len(heading["level"]), clean(heading["title"])) if heading else (0, "")
        if UNDERLINE.fullmatch(line) and section.body and section.body[-1].strip():
            level, title = 1, clean(section.body.pop())
        if not (level and title):
            section.body.append(line)
            continue
        yield section
        above = [(outer, name) for outer, name in above if outer < level] + [(level, title)]
        section = Section(level=level, path=tuple(name for _, name in above))
    yield section


def frontmatter(text: str) -> tuple[Frontmatter, str]:
    """Return the leading block between `---` lines as lists of values by key (in lower case), and the text after it.

    Text without such a block is all body, also when it merely starts with a rule. A second block right below the first
    is one too: programs write theirs above a person's, whose keys are added. What is no YAML under a key stays as it is
    written there.
    """
    block, body = _block(text)
    if block is None:
        return {}, text
    found = _keys(block)
    if found is None:
        return {}, text
    again, below = _block(body.lstrip("\n"))
    more = _keys(again) if again else None
    return ({**more, **found}, below) if more else (found, body)


def _block(text: str) -> tuple[list[str] | None, str]:
    """Return the lines between the first line and the next `---`, and what follows; None without such a block."""
    lines = rows(text)
    if next(lines).rstrip() != "---":
        return None, text
    block: list[str] = []
    for row in lines:
        if row.rstrip() in ("---", "..."):
            return block, text[text.find("\n") + 1 + sum(len(row) + 1 for row in block) :].partition("\n")[2]
        block.append(row)
    return None, text


def _keys(block: Sequence[str]) -> Frontmatter | None:
    """Return what a block says, key by key: one that is written wrongly costs no other. None for one that is prose."""
    parts: list[tuple[str, str, list[str]]] = []
    for row in block:
        pair = KEY.fullmatch(row) if len(row) <= MAX_HEADING_CHARS else None
        if pair:
            parts.append((pair["key"].lower(), pair["value"] or "", [row]))
        elif parts and (row[:1].isspace() or not row.strip() or row.startswith(("-", "#"))):
            parts[-1][2].append(row)
        elif row.strip() and not row.startswith("#"):
            return None
    return {key: _values(written, "\n".join(lines)) for key, written, lines in parts}


def _values(written: str, lines: str) -> tuple[str, ...]:
    """Return the values under one key; empty ones are left out."""
    try:
        # Every scalar as it is written: `yes`, 1.10 and 2026-02-03 are words here.
        said = yaml.load(lines, Loader=yaml.BaseLoader) if len(lines) <= MAX_HEADING_CHARS else None  # noqa: S506
    except (yaml.YAMLError, RecursionError, ValueError):
        said = None
    found = next(iter(said.values())) if isinstance(said, dict) and len(said) == 1 else written
    each = found if isinstance(found, list) else [found]
    return tuple(filter(None, (" ".join(clean(one).split()) for one in each)))


def day(written: str) -> Millis | None:
    """Return a date of the frontmatter in UTC: ISO 8601, or a date followed by a time; None when it is neither."""
    found = millis(written)
    if found is not None:
        return found
    try:
        return millis(datetime.strptime(written[:10], "%Y-%m-%d").replace(tzinfo=UTC).isoformat())
    except ValueError:
        return None
