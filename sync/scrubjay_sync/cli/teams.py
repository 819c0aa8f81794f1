"""`scrubjay teams`: scopes shared with other people."""

from __future__ import annotations

from scrubjay.cli import render
from scrubjay.cli.arguments import Parser, text
from scrubjay_sync.api.references import RefRequest
from scrubjay_sync.api.teams import (
    ROLES,
    TeamCreateRequest,
    TeamInviteRequest,
    TeamJoinRequest,
    TeamLine,
    TeamMemberRequest,
    TeamsResponse,
    TeamWordsResponse,
)
from scrubjay_sync.cli.arguments import add_password_stdin, subcommands
from scrubjay_sync.cli.command import Command
from scrubjay_sync.cli.presence import require_person
from scrubjay_sync.cli.rendering import identity_line
from scrubjay_sync.transport import connect

LEAVES = """
This takes you out of the team {name}, on all your devices. What came from it stays on them; what you change of it from
now on is yours alone.
"""


def configure(parser: Parser) -> None:
    """Add the arguments of `scrubjay teams`."""
    add = subcommands(parser, "subcommand", default="list")
    add("list", "list the teams that you are in, and who else is")
    add("card", "show the twelve words by which somebody lets you into a team")
    create = add("create", "make a team: new memories of its projects are shared with its members")
    create.add_argument("name", type=text, metavar="NAME", help="what you call the team (the server does not see it)")
    _add_projects(create)
    invite = add("invite", "let somebody in whose card's words you type; it shows the words that they type in turn")
    _add_team(invite)
    invite.add_argument("person", type=text, metavar="PERSON", help="their user name at the server")
    invite.add_argument("--role", choices=ROLES, default="writer", help="what they may do; writer unless said")
    _add_words(invite, "the twelve words of their card")
    add_password_stdin(invite)
    join = add("join", "come into the team whose words somebody who let you in reads to you")
    join.add_argument("name", type=text, metavar="NAME", help="what you call the team; it begins its members' names")
    _add_projects(join)
    _add_words(join, "the twelve words that whoever let you in was shown")
    add_password_stdin(join)
    role = add("role", "change what a member may do")
    _add_team(role)
    _add_member(role)
    role.add_argument("role", choices=ROLES, help="what they may do from now on")
    add_password_stdin(role)
    remove = add("remove", "take a member out, with a new key for what is written from now on")
    _add_team(remove)
    _add_member(remove)
    add_password_stdin(remove)
    leave = add("leave", "leave a team; what came from it stays on your devices")
    _add_team(leave)
    leave.add_argument("--confirm", type=text, metavar="TEAM", help="the same again, instead of typing it when asked")


def run(command: Command) -> None:
    """List teams, or change one."""
    command.require_login()
    line = command.line
    match line.subcommand:
        case "card":
            _show_words(command, command.call("team_card"), "your card's words, for whoever lets you into a team:")
        case "create":
            _show(
                command, command.call("team_create", TeamCreateRequest(name=line.name, projects=tuple(line.projects)))
            )
        case "invite":
            _invite(command)
        case "join":
            _join(command)
        case "role" | "remove":
            _change(command)
        case "leave":
            command.prompts.must_mean(LEAVES.format(name=line.team), line.team, line.confirm)
            _show(command, command.call("team_leave", RefRequest(ref=line.team)))
        case _:
            _show(command, command.call("teams"))


def _invite(command: Command) -> None:
    line = command.line
    what = f"This lets {line.person} into the team {line.team} as {line.role}."
    words = _words(command, f"{what}\nType the twelve words of their card")
    with connect(command.chosen) as transport:
        require_person(command, transport, what)
        answer = transport.call(
            "team_invite", TeamInviteRequest(team=line.team, person=line.person, role=line.role, words=words)
        )
    _show_words(command, answer, f"{line.person} is let in. They come in with  scrubjay teams join NAME  and type:")


def _join(command: Command) -> None:
    line = command.line
    what = f"This brings you into a team that you will call {line.name}: its members' memories come to your devices."
    words = _words(command, f"{what}\nType the twelve words that whoever let you in was shown")
    with connect(command.chosen) as transport:
        require_person(command, transport, what)
        request = TeamJoinRequest(name=line.name, words=words, projects=tuple(line.projects))
        answer = transport.call("team_join", request)
    _show(command, answer)


def _change(command: Command) -> None:
    line = command.line
    with connect(command.chosen) as transport:
        if line.subcommand == "role":
            require_person(command, transport, f"This makes {line.member} {line.role} in the team {line.team}.")
            request = TeamMemberRequest(team=line.team, member=line.member, role=line.role)
            answer = transport.call("team_role", request)
        else:
            require_person(command, transport, f"This takes {line.member} out of the team {line.team}.")
            answer = transport.call("team_remove", TeamMemberRequest(team=line.team, member=line.member))
    _show(command, answer)


def _words(command: Command, what: str) -> tuple[str, ...]:
    given = " ".join(command.line.words or ())
    return tuple((given or command.prompts.word(what, None)).split())


def _show_words(command: Command, answer: TeamWordsResponse, what: str) -> None:
    command.out.answer(answer, lambda: f"{what}\n\n  {' '.join(answer.words)}\n\n{identity_line(answer.who)}")


def _show(command: Command, answer: TeamsResponse) -> None:
    command.out.answer(
        answer, lambda: "\n".join([*(_lines(answer.teams) or ["you are in no team"]), identity_line(answer.who)])
    )


def _lines(teams: tuple[TeamLine, ...]) -> list[str]:
    lines = []
    for team in teams:
        about = ", ".join(filter(None, (team.role, f"projects {', '.join(team.projects)}" if team.projects else "")))
        lines.append(render.words.clean(f"{team.name} ({team.id[:8]})  {about}"))
        for one in team.members:
            who = "you" if one.you else one.name or "-"
            lines.append(render.words.clean(f"  {who}  {one.account[:8]}  {one.role}"))
        lines.append(f"  its changes up to now, in words: {' '.join(team.words) or '-'}")
    return lines


def _add_team(parser: Parser) -> None:
    parser.add_argument("team", type=text, metavar="TEAM", help="name or id, or the beginning of the id")


def _add_member(parser: Parser) -> None:
    parser.add_argument(
        "member",
        type=text,
        metavar="MEMBER",
        help="the user name that you let in, or the beginning of the account's id",
    )


def _add_projects(parser: Parser) -> None:
    parser.add_argument(
        "--project",
        dest="projects",
        action="append",
        default=[],
        type=text,
        metavar="ID",
        help="a project whose new memories are shared; repeatable",
    )


def _add_words(parser: Parser, what: str) -> None:
    parser.add_argument("--words", nargs="+", type=text, metavar="WORD", help=f"{what}, quoted or not")
