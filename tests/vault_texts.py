"""Strategies for vault files as people write them, and for texts as the store may hold them."""

from __future__ import annotations

from hypothesis import strategies as st

LINES = (
    "# Title", "## Food", "### Deep", "## Kibo", "Setext", "---", "===", "- berries near rivers", "* a star", "+ plus",
    "1. first", "2) second", "  - nested", "   three spaces", "    code", "\ttab", "> quoted", "```", "~~~", "<div>",
    "<!-- a note -->", "<!-- open", "-->", "", "", "", "plain words", "more words here", "[a]: http://x", "- ", "-",
    "* * *", "-  two spaces", "-      code in item", "lazy", "  indented", "a | b", "- [ ] task", "caf\u00e9 \u2028 x",
    "- ---", "10. ten", "\\# no heading", "#hash", "####### seven", "</div>", "- - twice",
)  # fmt: skip
ENDINGS = ("\n", "\r\n", "\r")


@st.composite
def files(draw: st.DrawFn) -> str:
    """Draw a file: any lines in any order, one kind of line ends or several, with or without the last and a mark."""
    lines = draw(st.lists(st.sampled_from(LINES), max_size=14))
    ending = draw(st.sampled_from(ENDINGS))
    text = ending.join(lines)
    if draw(st.booleans()):
        text += ending
    if draw(st.booleans()):
        text = f"---\ntitle: x\n---\n{text}"
    return ("\ufeff" if draw(st.booleans()) else "") + text


CONTENTS = st.one_of(
    st.lists(st.sampled_from(LINES), min_size=1, max_size=4).map("\n".join).filter(lambda text: bool(text.strip())),
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=30),
).map(str.strip).filter(bool)  # fmt: skip
