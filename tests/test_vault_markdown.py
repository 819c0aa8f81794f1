"""Vault files are read as people's editors read them, and changed in place without touching anything else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay.vault.markdown import CONFLICT, Form, normal, parse
from scrubjay.vault.rendering import Edits, Insertion, heading_text, render
from vault_texts import CONTENTS, files

SOCIAL = """\
# Social memory

## Kibo
- Seen at B2 (tick 14), C3 (tick 9)
- Shared food location once (tick 9)
  and it was accurate

## Delta
Told me food was at A1.

May be unreliable.
"""


def edits(**given: object) -> Edits:
    chosen: dict[str, object] = {"replaced": {}, "removed": frozenset(), "kept": {}, "inserted": ()} | given
    return Edits(**chosen)  # type: ignore[arg-type]


def test_items_and_paragraphs_are_entries_of_their_sections() -> None:
    found = [(entry.section, entry.text, entry.form) for entry in parse(SOCIAL).entries]
    assert found == [
        ("Kibo", "Seen at B2 (tick 14), C3 (tick 9)", Form.ITEM),
        ("Kibo", "Shared food location once (tick 9)\nand it was accurate", Form.ITEM),
        ("Delta", "Told me food was at A1.", Form.PARAGRAPH),
        ("Delta", "May be unreliable.", Form.PARAGRAPH),
    ]


TICKS = """\
# Episodes

## Tick 1
- one

- two

## Tick 2

## Tick 3
### Morning
three

### Evening
- four

## Tick 4
- five

(see the map)

[map]: map.png
"""


def without(*texts: str, **more: object) -> str:
    before = parse(TICKS)
    removed = frozenset(at for at, entry in enumerate(before.entries) if entry.text in texts)
    done = render(before, edits(removed=removed, drops_headings=True, **more))
    assert done is not None
    return done[0]


def test_a_heading_goes_with_the_last_entry_below_it_where_that_is_asked_for() -> None:
    assert without("one", "two") == TICKS.replace("## Tick 1\n- one\n\n- two\n\n", "")
    assert without("one").startswith("# Episodes\n\n## Tick 1\n")
    assert without("four") == TICKS.replace("### Evening\n- four\n\n", "")
    assert without("three", "four") == TICKS.replace("## Tick 3\n### Morning\nthree\n\n### Evening\n- four\n\n", "")
    left = without("one", "two", "three", "four", "five", "(see the map)")
    assert left == "# Episodes\n\n## Tick 2\n\n## Tick 4\n\n[map]: map.png\n", "what holds a line of the person's stays"


def test_a_heading_stays_where_something_new_comes_below_it_or_nobody_asks() -> None:
    new = (Insertion(key="k", section="Tick 1", text="six"),)
    assert without("one", "two", inserted=new).startswith("# Episodes\n\n## Tick 1\n- six\n")
    done = render(parse("## Tick 1\n- one\n"), edits(removed=frozenset({0})))
    assert done is not None
    assert done[0] == "## Tick 1\n"
    done = render(parse("- a\n\n## Tick 1\n- one\n"), edits(removed=frozenset({1}), drops_headings=True))
    assert done is not None
    assert done[0] == "- a\n"


def test_an_entry_is_changed_where_it_stands() -> None:
    done = render(
        parse(SOCIAL),
        edits(
            replaced={0: "Seen at D4", 2: "Said food was at A1."},
            removed=frozenset({1}),
            kept={3: "Is unreliable."},
            inserted=(
                Insertion(key="k", section="Kibo", text="Ate berries"),
                Insertion(key="z", section="Zed", text="x"),
            ),
        ),
    )
    assert done is not None
    assert done[0] == (
        "# Social memory\n\n## Kibo\n- Seen at D4\n- Ate berries\n\n## Delta\nSaid food was at A1.\n\n"
        f"May be unreliable.\n\n- {CONFLICT}\n  Is unreliable.\n\n## Zed\n\n- x\n"
    )
    assert [placed.source for placed in done[1]] == [0, "k", 2, 3, None, "z"]


@given(files())
def test_a_file_that_is_not_changed_stays_byte_for_byte(text: str) -> None:
    done = render(parse(text), edits())
    assert done is not None
    assert done[0] == text


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, Edits]:
    text = draw(files())
    places = range(len(parse(text).entries))
    chosen = {place: draw(st.sampled_from(("keep", "keep", "replace", "remove", "conflict"))) for place in places}
    names = st.sampled_from(("", "Food", "Kibo", "New one", "Food / Deep", "Zed #2"))
    inserted = draw(st.lists(st.tuples(names, CONTENTS), max_size=3))
    return text, edits(
        replaced={place: draw(CONTENTS) for place, what in chosen.items() if what in {"replace", "conflict"}},
        removed=frozenset(place for place, what in chosen.items() if what == "remove"),
        kept={place: draw(CONTENTS) for place, what in chosen.items() if what == "conflict"},
        inserted=tuple(Insertion(key=f"k{n}", section=name, text=text) for n, (name, text) in enumerate(inserted)),
    )


def never_ends(text: str) -> bool:
    """Say whether a block at the end is not closed, so that what follows belongs to it."""
    found = parse(f"{text}\n\n+ more\n").entries
    return not found or found[-1].text != "more"


@settings(max_examples=150)
@given(changes())
def test_after_any_change_the_file_says_what_it_should_and_nothing_else(change: tuple[str, Edits]) -> None:
    text, wanted = change
    before = parse(text)
    done = render(before, wanted)
    if done is None:
        # A lone carriage return ends a line for markdown, and for hardly an editor: such a file is left as it is.
        assert never_ends(text) or re.search(r"\r(?!\n)", text), (
            "every form takes every change, but for a block that is not closed"
        )
        return
    found = parse(done[0])
    said = {place: entry.text for place, entry in enumerate(before.entries) if place not in wanted.removed}
    said |= {place: normal(new) for place, new in wanted.replaced.items()}
    assert [placed.entry.text for placed in done[1]] == [entry.text for entry in found.entries]
    assert {p.source: p.entry.text for p in done[1] if isinstance(p.source, int)} == said
    assert [p.entry.text for p in done[1] if p.source is None] == [
        normal(f"{CONFLICT}\n{t}") for t in wanted.kept.values()
    ]
    assert {p.source: (p.entry.section, p.entry.text) for p in done[1] if isinstance(p.source, str)} == {
        one.key: (one.section, normal(one.text)) for one in wanted.inserted
    }
    assert found.has_bom == before.has_bom
    kept = [line for line in before.lines if line.startswith(("<!-- a note", "# Title"))]
    assert all(line in found.lines for line in kept if not wanted.removed and not wanted.replaced)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n"])
def test_line_ends_the_mark_and_the_missing_last_line_end_stay(ending: str, last: str) -> None:
    text = "\ufeff" + f"## Food\n- berries\n- fish{last}".replace("\n", ending)
    done = render(
        parse(text), edits(replaced={0: "grapes"}, inserted=(Insertion(key="k", section="Food", text="figs"),))
    )
    assert done is not None
    assert done[0] == "\ufeff" + f"## Food\n- grapes\n- fish\n- figs{last}".replace("\n", ending)


@given(st.text(max_size=60))
def test_any_topic_becomes_a_heading_that_says_it(name: str) -> None:
    heading = heading_text(name, 40)
    found = parse(f"## {heading}\n\n- x\n").entries
    assert [entry.text for entry in found] == ["x"]
    assert found[0].section == heading
