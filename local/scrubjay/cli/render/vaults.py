"""Plain files: the vaults, what was written into them, and what they answer."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from scrubjay import api
from scrubjay.cli.render.layout import dim, table_of
from scrubjay.cli.render.words import clean, counted, one_line


def shown(
    answer: api.VaultsResponse | api.VaultRememberResponse | api.VaultRecallResponse | api.VaultCondenseResponse,
) -> RenderableType:
    """Return an answer about vaults."""
    if isinstance(answer, api.VaultsResponse):
        return vaults(answer)
    if isinstance(answer, api.VaultRecallResponse):
        return sections(answer)
    if isinstance(answer, api.VaultCondenseResponse):
        return condensed(answer)
    return Text(f"{answer.file}{f' / {clean(answer.section)}' if answer.section else ''}  {answer.id}")


def vaults(answer: api.VaultsResponse) -> RenderableType:
    """Return the vaults, a table each, and what waits for the person below it."""
    if not answer.vaults:
        return dim("no vault: scrubjay vault init FOLDER --agent NAME keeps an agent's memory as plain files")
    parts: list[RenderableType] = []
    for vault in answer.vaults:
        parts.append(Text(f"{clean(vault.agent)}  {clean(vault.folder)}", style="bold"))
        table = table_of("file", "entries", "gone", "conflicts", "refused")
        for one in vault.files:
            table.add_row(one.file, *(f"{n:,}" for n in (one.entries, one.gone, one.conflicts, one.refused)))
        parts.append(table)
        parts += [Text(clean(one.problem), style="red") for one in vault.files if one.problem]
    return Group(*parts)


def sections(answer: api.VaultRecallResponse) -> RenderableType:
    """Return the sections that answer, best first, with their entries."""
    if not answer.sections:
        return dim("no section has these words")
    lines = Text()
    for one in answer.sections:
        record = f"  {one.confirmed} confirmed, {one.contradicted} contradicted" if _claims(one) else ""
        lines.append(f"{one.file}{f' / {clean(one.section)}' if one.section else ''}", style="bold")
        lines.append(f"  {one.score:.2f}{record}\n", style="dim")
        for entry in one.entries:
            lines.append(f"  - {one_line(entry.text, 200)}\n", style="" if entry.score else "dim")
    lines.rstrip()
    return lines


def _claims(section: api.VaultSection) -> int:
    return section.confirmed + section.contradicted


def condensed(answer: api.VaultCondenseResponse) -> RenderableType:
    """Return what was carried over, and what was archived."""
    lines = Text()
    for one in answer.written:
        lines.append(f"{one.file} / {one.section}: {one_line(one.text, 160)}\n")
    lines.append(f"{counted(len(answer.written), 'entry', 'entries')} written, {len(answer.archived)} archived")
    if answer.cause:
        lines.append(f"\nscrubjay undo {answer.cause} takes it back", style="dim")
    return lines
