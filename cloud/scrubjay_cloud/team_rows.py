"""The rows of teams, and who may ask for which."""

from __future__ import annotations

from scrubjay_cloud.database.port import Transaction
from scrubjay_shared.errors import NotFoundError

BY_TEAM = ("team_log", "team_member", "team_wrap", "team_lane", "team_object")
"""What belongs to a team, by its column `team`."""


def no_team() -> NotFoundError:
    """Return the error for a team that is not there, or that the caller was never in: the two look alike."""
    return NotFoundError("you are in no such team", hint="scrubjay teams list shows those that you are in")


def head_for(tx: Transaction, team: bytes, account: bytes) -> bytes:
    """Return where a team's log ends, for a member or a former one. Raises NotFoundError."""
    row = tx.row(
        "select t.head from team t join team_member m on m.team = t.id where t.id = ? and m.account = ?",
        (team, account),
    )
    if row is None:
        raise no_team()
    head: bytes = row[0]
    return head


def whole_log(tx: Transaction, team: bytes) -> list[bytes]:
    """Return a team's log. Raises NotFoundError when the team is gone."""
    rows = tx.rows("select entry from team_log where team = ? order by seq", (team,))
    if not rows:
        raise no_team()
    return [row[0] for row in rows]


def log_of(tx: Transaction, team: bytes, account: bytes, start: int = 0) -> tuple[list[bytes], int, bytes]:
    """Return a team's log from an entry on as a member may read it, and where that ends; a former one to their end.

    Raises NotFoundError for an account that was never in it.
    """
    member = tx.row("select until_seq from team_member where team = ? and account = ?", (team, account))
    last = tx.row("select seq, head from team where id = ?", (team,))
    if member is None or last is None:
        raise no_team()
    seq, head = last
    if member[0] is not None and member[0] < seq:
        seq = member[0]
        (head,) = tx.row("select hash from team_log where team = ? and seq = ?", (team, seq)) or (b"",)
    rows = tx.rows("select entry from team_log where team = ? and seq between ? and ? order by seq", (team, start, seq))
    return [row[0] for row in rows], seq, head


def erase_team(tx: Transaction, team: bytes) -> None:
    """Delete everything of a team."""
    for table in BY_TEAM:
        tx.execute(f"delete from {table} where team = ?", (team,))
    tx.execute("delete from team where id = ?", (team,))


def erase_left(tx: Transaction, account: bytes) -> None:
    """Forget an account that is being deleted: its card and wraps, and the teams that nobody else is in.

    In the others' logs it stays a member until an admin takes it out: the server cannot sign that.
    """
    teams = [row[0] for row in tx.rows("select team from team_member where account = ?", (account,))]
    tx.execute("delete from team_card where account = ?", (account,))
    tx.execute("delete from team_wrap where account = ?", (account,))
    tx.execute("delete from team_member where account = ?", (account,))
    for team in teams:
        if tx.row("select 1 from team_member where team = ? and until_seq is null limit 1", (team,)) is None:
            erase_team(tx, team)
