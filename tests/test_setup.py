"""What hosts are told of scrubjay: added to what is there, renewed in its place, taken out to the byte."""

from __future__ import annotations

import json
import shlex
import stat
import subprocess
import sys
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_machine import HOME, machine
from scrubjay.setup import files, json_edits, json_source, plan, toml_edits
from scrubjay.setup.hosts import HOSTS
from scrubjay.setup.json_edits import Hooks, Server
from scrubjay.setup.program import IF_THERE
from scrubjay.setup.target import Target
from scrubjay_shared.errors import ConflictError, CorruptError, InvalidError, ScrubjayError

TARGETS: list[Target] = [target for host in HOSTS.values() for target in host.targets(machine())]
JSON_TARGETS = [target for target in TARGETS if target.path.suffix == ".json"]
TOML_TARGETS = [target for target in TARGETS if target.path.name == "config.toml"]
OWN_TARGETS = [target for target in TARGETS if target not in JSON_TARGETS + TOML_TARGETS]


def name(target: Target) -> str:
    return str(target.path.relative_to(HOME))


STRICT = {"settings.json": ".claude", ".claude.json": "ana", "hooks.json": ".codex"}
"""The files whose programs read JSON without comments."""


def is_strict(target: Target) -> bool:
    return STRICT.get(target.path.name) == target.path.parent.name


OTHER_HOOK = {"type": "command", "command": "/usr/bin/notify --done"}
EVERY_EVENT = {event: [{"hooks": [OTHER_HOOK]}] for event in ("SessionStart", "Stop", "AfterAgent", "SessionEnd")}
FLAT = {"version": 1, "hooks": {event: [OTHER_HOOK] for event in ("sessionStart", "postToolUse")}}
SERVERS = {key: {"other": {"command": "other", "args": []}} for key in ("mcpServers", "servers", "context_servers")}
PRIOR_JSON: dict[str, bytes | None] = {
    "absent": None,
    "empty": b"",
    "empty object": b"{}",
    "empty object and line": b"{ }\n",
    "on one line": b'{"model":"opus","hooks":{},"mcpServers":{}}',
    "no newline at the end": b'{\n  "model": "opus"\n}',
    "four spaces": b'{\n    "model": "opus",\n    "permissions": {"allow": ["Bash"]}\n}\n',
    "tabs": b'{\n\t"model": "opus"\n}\n',
    "CRLF": b'{\r\n  "model": "opus",\r\n  "hooks": {\r\n  }\r\n}\r\n',
    "byte-order mark": b'\xef\xbb\xbf{"model": "opus"}\n',
    "hooks of another in groups": json.dumps({"hooks": EVERY_EVENT}, indent=2).encode() + b"\n",
    "servers of another": json.dumps(SERVERS | {"mcp": {"other": {"type": "local"}}}, indent=3).encode(),
    "not ASCII": '{"user": "Zoë \\u0041 – 日本", "n": 1.0e5}'.encode(),
}
COMMENTED: dict[str, bytes | None] = {
    "comments": b'// mine\n{\n  // a theme\n  "theme": "dark", // yes\n  /* keep */\n}\n// end',
    "comments in the places that are ours": b'{\n "hooks": { // none\n },\n "mcpServers": {}, // none\n "mcp": {/* no */}\n}',
    "comma at the end": b'{\n  "a": 1,\n  "hooks": {},\n}\n',
    "an address in a text": b'{"url": "https://example.org/a", /* // */ "b": "/* no comment */"}',
}
PRIOR_TOML: dict[str, bytes | None] = {
    "absent": None,
    "empty": b"",
    "no newline at the end": b'model = "gpt-5"',
    "CRLF": b'model = "gpt-5"\r\n\r\n[tui]\r\ntheme = "dark"\r\n',
    "other servers and comments": b'# mine\n[mcp_servers.other]\ncommand = "x" # why\n\n# last\n',
    "a text that looks like ours": b'notes = """\n[mcp_servers.scrubjay]\ncommand = 1\n"""\n',
    "empty lines at the end": b'model = "a"\n\n\n',
}
CASES = [
    *((target, case, prior) for target in JSON_TARGETS for case, prior in PRIOR_JSON.items()),
    *((target, case, prior) for target in JSON_TARGETS if not is_strict(target) for case, prior in COMMENTED.items()),
    *((target, case, prior) for target in TOML_TARGETS for case, prior in PRIOR_TOML.items()),
    *((target, "absent", None) for target in OWN_TARGETS),
]


def fits(target: Target, prior: bytes | None) -> bool:
    """Say whether a host could have that file: lists of groups where it reads groups."""
    return prior is None or b"notify" not in prior or ("cursor" not in name(target) and "copilot" not in name(target))


@pytest.mark.parametrize(
    ("target", "prior"),
    [pytest.param(target, prior, id=f"{name(target)}: {case}") for target, case, prior in CASES if fits(target, prior)],
)
def test_what_was_set_up_is_removed_to_the_byte(target: Target, prior: bytes | None) -> None:
    set_up = plan.installation([target], {target.path: prior}, {}).edits[0]
    again = plan.installation([target], {target.path: set_up.after}, records(set_up)).edits[0]
    gone = plan.removal([target], {target.path: again.after}, records(again)).edits[0]

    assert set_up.after not in {prior, None}
    assert again.after == set_up.after
    assert again.record == set_up.record
    assert gone.after == prior


def records(edit: plan.Edit) -> dict[Path, plan.Record]:
    assert edit.record is not None
    return {edit.path: edit.record}


@pytest.mark.parametrize(
    ("target", "case", "prior"),
    [pytest.param(*one, id=f"{name(one[0])}: {one[1]}") for one in CASES if fits(one[0], one[2])],
)
def test_without_a_record_only_what_is_ours_goes(target: Target, case: str, prior: bytes | None) -> None:
    data = target.install(prior)
    left = target.remove(data, plan.UNKNOWN)

    if target in OWN_TARGETS:
        assert left is None
    elif target in TOML_TARGETS:
        assert left is not None
        assert tomllib.loads(left.decode()) == tomllib.loads((prior or b"").decode())
    else:
        assert left is not None
        empty = {"hooks": {}, "mcpServers": {}, "mcp": {}, "version": 1}
        assert meaning(left) == {key: value for key, value in meaning(prior).items() if empty.get(key) != value} | {
            key: value for key, value in meaning(left).items() if empty.get(key) == value
        }, case


def meaning(data: bytes | None) -> Any:
    text = (data or b"").removeprefix(b"\xef\xbb\xbf").decode()
    return json_source.parse(text).value if text.strip() else {}


@pytest.mark.parametrize("target", JSON_TARGETS, ids=name)
def test_a_file_that_was_changed_since_keeps_the_changes(target: Target) -> None:
    prior = b'{\n  "model": "opus" \n}\n'
    set_up = plan.installation([target], {target.path: prior}, {}).edits[0]
    assert set_up.after is not None
    changed = set_up.after.replace(b'"opus"', b'"sonnet"').rstrip()

    gone = plan.removal([target], {target.path: changed}, records(set_up)).edits[0]

    assert gone.after is not None
    assert meaning(gone.after) == {"model": "sonnet"} | ({"version": 1} if b'"version"' in set_up.after else {})


@pytest.mark.parametrize("target", [*JSON_TARGETS, *TOML_TARGETS], ids=name)
@pytest.mark.parametrize(
    "broken",
    [b"{", b'{"a": }', b'{"hooks": [}', b"[1", b'{"a": 1} x', b"\xff\xfe{\x00}\x00", b'{"hooks": "no"', b"nul", b"= 3"],
)
def test_a_broken_file_is_refused_and_its_path_is_named(target: Target, broken: bytes) -> None:
    with pytest.raises(ScrubjayError) as caught:
        plan.installation([target], {target.path: broken}, {})

    assert str(target.path) in caught.value.message
    assert "nothing was changed" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("target", [one for one in JSON_TARGETS if is_strict(one)], ids=name)
def test_comments_are_refused_where_the_host_would_not_read_the_file(target: Target) -> None:
    with pytest.raises(InvalidError, match="line 1, column 3: a comment"):
        target.install(b"{ // no\n}")


def hooks_of(host: str, hook: str = "/opt/scrubjay/bin/scrubjay-hook") -> tuple[Target, dict[str, Any]]:
    target = HOSTS[host].targets(machine(hook=hook))[0]
    return target, json.loads(target.install(None))["hooks"]


GROUPED = ("claude-code", "codex", "gemini")


@pytest.mark.parametrize("host", GROUPED)
def test_our_group_stands_last_and_is_renewed_in_its_place(host: str) -> None:
    old, _ = hooks_of(host, "/old/scrubjay-hook")
    new, wanted = hooks_of(host)
    theirs = [{"hooks": [{"type": "command", "command": f"other {n}"}]} for n in range(3)]

    data = old.install(json.dumps({"hooks": {"Stop": theirs[:2], "SessionStart": theirs[:1]}}).encode())
    found = json.loads(data)
    found["hooks"]["SessionStart"].append(theirs[2])
    renewed = json.loads(new.install(json.dumps(found).encode()))["hooks"]

    assert found["hooks"]["SessionStart"][0] == theirs[0]
    assert "/old/scrubjay-hook" in json.dumps(found["hooks"]["SessionStart"][1])
    assert renewed["SessionStart"] == [theirs[0], *wanted["SessionStart"], theirs[2]]
    assert renewed["Stop"][:2] == theirs[:2]
    assert "/old/" not in json.dumps(renewed)


def test_what_a_person_added_to_our_group_stays_when_it_is_renewed_and_removed() -> None:
    target, wanted = hooks_of("claude-code")
    theirs = {"type": "command", "command": "mine"}
    stale = {"type": "command", "command": "/old/scrubjay-hook", "args": ["claude-code", "Stop"]}
    data = json.dumps({"hooks": {"Stop": [{"matcher": "x", "hooks": [theirs, stale]}]}}).encode()

    renewed = target.install(data)
    left = target.remove(renewed, plan.UNKNOWN)

    assert json.loads(renewed)["hooks"]["Stop"] == [{"matcher": "x", "hooks": [theirs, *wanted["Stop"][0]["hooks"]]}]
    assert left is not None
    assert json.loads(left) == {"hooks": {"Stop": [{"matcher": "x", "hooks": [theirs]}]}}


def test_a_hook_of_ours_for_an_event_that_is_not_registered_any_more_goes() -> None:
    target, _ = hooks_of("claude-code")
    old = {"hooks": {"PostToolBatch": [{"hooks": [{"type": "command", "command": "/x/scrubjay-hook"}]}]}}

    found = json.loads(target.install(json.dumps(old).encode()))["hooks"]

    assert not found.get("PostToolBatch")


def test_a_server_of_the_same_name_that_is_not_ours_is_left_alone() -> None:
    server = Server(path=("mcpServers", "scrubjay"), entry={"command": "/x/scrubjay", "args": ["mcp"]})
    with pytest.raises(ConflictError, match="does not call scrubjay"):
        server.installed('{"mcpServers": {"scrubjay": {"command": "npx"}}}')
    with pytest.raises(ConflictError, match="does not call scrubjay"):
        toml_edits.installed('[mcp_servers.scrubjay]\ncommand = "npx"\n', "/x/scrubjay", ["mcp"])


def test_what_a_person_set_on_our_server_stays_when_it_is_renewed() -> None:
    target = HOSTS["opencode"].targets(machine())[1]
    data = target.install(None).replace(b'"enabled": true', b'"enabled": false').replace(b"/opt/", b"/old/")

    found = json.loads(target.install(data))["mcp"]["scrubjay"]

    assert found["enabled"] is False
    assert found["command"][0] == "/opt/scrubjay/bin/scrubjay"


@pytest.mark.parametrize("host", [host for host in HOSTS if HOSTS[host].captures])
def test_every_command_line_is_whole_after_the_shell_took_it_apart(host: str) -> None:
    written = b"".join(target.install(None) for target in HOSTS[host].targets(machine()) if not target.extra).decode()
    lines = {json.loads(f'"{found}"') for found in strings(written) if "scrubjay-hook " in found}

    assert lines or host in {"claude-code", "opencode"}
    for line in lines:
        shell_, _, guard, *words = shlex.split(line)
        assert (shell_, guard) == ("/bin/sh", IF_THERE)
        assert words[:3] == ["/opt/scrubjay/bin/scrubjay-hook", "--data-dir", "/data/of ana"]
        assert words[3:] in ([host, words[-1]], ["inject", host, words[-1]])


def command_lines(host: str, hook: str) -> list[list[str]]:
    """Return what a host runs for each hook, as its shell takes the line apart."""
    target, _ = hooks_of(host, hook)
    entries = [entry for group in json.loads(target.install(None))["hooks"].values() for entry in group]
    handlers = [handler for entry in entries for handler in entry.get("hooks", [entry])]
    lines = [handler.get("command") or handler["bash"] for handler in handlers]
    return [
        [line, *handler["args"]] if "args" in handler else ["bash", "-c", line]
        for line, handler in zip(lines, handlers, strict=True)
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="hooks go through a shell where one is there for certain")
@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini", "copilot", "cursor"])
@pytest.mark.parametrize("left", ["nothing", "a script whose Python is gone", "a folder"])
def test_a_hook_whose_program_is_gone_says_nothing_and_ends_well(tmp_path: Path, host: str, left: str) -> None:
    program = tmp_path / "with space" / "scrubjay-hook"
    program.parent.mkdir()
    if left == "a folder":
        program.mkdir()
    elif left != "nothing":
        program.write_text("#!/nowhere/bin/python\n")
        program.chmod(0o755)

    for line in command_lines(host, str(program)):
        done = subprocess.run(line, input=b"{}", capture_output=True, check=False)

        assert (done.returncode, done.stdout) == (0, b"")
        assert left != "nothing" or done.stderr == b""


@pytest.mark.skipif(sys.platform == "win32", reason="as above")
@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini", "copilot", "cursor"])
def test_a_hook_whose_program_is_there_is_given_all_that_it_needs(tmp_path: Path, host: str) -> None:
    program = tmp_path / "with space" / "scrubjay-hook"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$@"; cat\n')
    program.chmod(0o755)

    for line in command_lines(host, str(program)):
        done = subprocess.run(line, input=b"payload", capture_output=True, check=True)

        assert done.stdout.startswith(b"--data-dir /data/of ana ")
        assert done.stdout.endswith(b"payload")


def strings(text: str) -> list[str]:
    return text.split('"')[1::2] if "\\" not in text else [part[1:-1] for part in _quoted(text)]


def _quoted(text: str) -> list[str]:
    import re  # noqa: PLC0415

    return re.findall(r'"(?:[^"\\]|\\.)*"', text)


@pytest.mark.parametrize("target", TOML_TARGETS, ids=name)
def test_the_table_is_renewed_in_its_place_and_keeps_what_a_person_added(target: Target) -> None:
    data = (
        b'[mcp_servers.scrubjay]\ncommand = "/old/scrubjay"\nargs = ["mcp"]\nstartup_timeout_sec = 20\n\n'
        b"# next\n[tui]\nx = 1\n"
    )

    renewed = target.install(data)
    left = target.remove(renewed, data)

    found = tomllib.loads(renewed.decode())["mcp_servers"]["scrubjay"]
    assert (found["command"], found["startup_timeout_sec"]) == ("/opt/scrubjay/bin/scrubjay", 20)
    assert left == b"# next\n[tui]\nx = 1\n"


@pytest.mark.parametrize(
    "text",
    ['mcp_servers = { scrubjay = { command = "/old/scrubjay" } }\n', 'mcp_servers.scrubjay.command = "scrubjay"\n'],
)
def test_a_table_that_is_written_inline_is_refused(text: str) -> None:
    with pytest.raises(InvalidError, match=r"not a table of lines"):
        toml_edits.installed(text, "/x/scrubjay", ["mcp"])
    with pytest.raises(InvalidError, match=r"not a table of lines"):
        toml_edits.removed(text)


def test_a_command_of_the_same_name_that_is_not_ours_stays_and_is_told_of() -> None:
    targets = HOSTS["claude-code"].targets(machine())
    contents: dict[Path, bytes | None] = dict.fromkeys((target.path for target in targets), None)
    mine = HOME / ".claude/skills/recall/SKILL.md"
    contents[mine] = b"my own"

    made = plan.installation(targets, contents, {})

    assert mine not in {edit.path for edit in made.edits}
    assert [note for note in made.notes if "/recall is left out" in note]
    assert plan.removal(targets, contents, {}).edits[2].action == "keep"


# Laws.

SCALARS = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
GROUPS = st.lists(st.fixed_dictionaries({"hooks": st.lists(st.just(OTHER_HOOK), max_size=2)}), max_size=2)
DOCUMENTS = st.dictionaries(st.text(max_size=5), VALUES, max_size=3).flatmap(
    lambda rest: st.fixed_dictionaries(
        {},
        optional={
            "hooks": st.dictionaries(st.sampled_from(["Stop", "SessionStart", "Other"]), GROUPS, max_size=3),
            "mcpServers": st.dictionaries(st.sampled_from(["a", "b"]), st.just({"command": "x"}), max_size=2),
        },
    ).map(lambda ours: rest | ours)
)
HOOKS = Hooks(
    handlers={
        event: {"type": "command", "command": f"/x/scrubjay-hook c {event}"} for event in ("Stop", "SessionStart")
    }
)
SERVER = Server(path=("mcpServers", "scrubjay"), entry={"command": "/x/scrubjay", "args": ["mcp"]})
NOISE = st.sampled_from(["", " ", "\n", "\t", "\n  ", "/* , } ] */", '// " {\n', "\r\n"])


@given(document=DOCUMENTS, indent=st.sampled_from([None, 2, 4, "\t"]), crlf=st.booleans())
def test_merging_keeps_all_that_is_there_and_removing_takes_only_ours(
    document: Any, indent: Any, *, crlf: bool
) -> None:
    text = json.dumps(document, indent=indent)
    text = text.replace("\n", "\r\n") if crlf else text

    installed = SERVER.installed(HOOKS.installed(text))
    found = json.loads(installed)
    left = SERVER.removed(json_edits.without_hooks(installed, document), document)

    assert SERVER.installed(HOOKS.installed(installed)) == installed
    for event in ("Stop", "SessionStart"):
        before = document.get("hooks", {}).get(event, [])
        assert found["hooks"][event] == [*before, {"hooks": [HOOKS.handlers[event]]}]
    assert found["mcpServers"] == {**document.get("mcpServers", {}), "scrubjay": SERVER.entry}
    assert json.loads(left) == document


@st.composite
def commented(draw: st.DrawFn) -> tuple[str, Any]:
    """A document with spaces and comments in every place that allows them, and what it says."""
    document = draw(DOCUMENTS)

    def written(value: Any) -> str:
        space = draw(NOISE)
        if isinstance(value, dict):
            inside = ",".join(
                f"{draw(NOISE)}{json.dumps(key)}{draw(NOISE)}:{written(below)}" for key, below in value.items()
            )
            return f"{space}{{{inside}{draw(st.sampled_from(['', ','])) if value else ''}{draw(NOISE)}}}{draw(NOISE)}"
        if isinstance(value, list):
            inside = ",".join(map(written, value))
            return f"{space}[{inside}{draw(st.sampled_from(['', ','])) if value else ''}{draw(NOISE)}]{draw(NOISE)}"
        return f"{space}{json.dumps(value)}{draw(NOISE)}"

    return written(document), document


@given(commented())
def test_merging_keeps_every_comment_and_stays_readable(written: tuple[str, Any]) -> None:
    text, document = written
    assert json_source.parse(text).value == document

    installed = SERVER.installed(HOOKS.installed(text))
    left = SERVER.removed(json_edits.without_hooks(installed, document), document)

    assert json_source.parse(left).value == document
    assert installed.count("/* , } ] */") == left.count("/* , } ] */") == text.count("/* , } ] */")
    assert SERVER.installed(HOOKS.installed(installed)) == installed


@given(st.text(alphabet='{}[]",:/*\\ \n1aé', max_size=20))
def test_whatever_python_reads_is_read_alike_and_nothing_else_crashes(text: str) -> None:
    try:
        wanted = json.loads(text)
    except ValueError:
        with pytest.raises(InvalidError):
            json_source.parse(text, comments=False)
    else:
        assert json_source.parse(text, comments=False).value == wanted


# Files.


def carried_out(home: Path, host: str, *, remove: bool = False) -> plan.Plan:
    targets = files.named(HOSTS[host].targets(machine(home)))
    kept = files.Records(home / "records", host)
    decide = plan.removal if remove else plan.installation
    made = decide(targets, files.contents(targets), kept.load())
    files.apply(made, kept)
    return made


def tree(folder: Path) -> dict[str, bytes | None]:
    return {
        str(PurePosixPath(path.relative_to(folder))): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if "records" not in path.parts
    }


@pytest.mark.parametrize("host", HOSTS)
def test_a_home_is_after_removing_as_it_was_before_setting_up(host: str, tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_bytes(b'{"model": "opus"}')
    (tmp_path / ".config/zed").mkdir(parents=True)
    (tmp_path / ".config/zed/settings.json").write_bytes(b"// mine\r\n{\r\n}\r\n")
    before = tree(tmp_path)

    carried_out(tmp_path, host)
    during = tree(tmp_path)
    assert all(edit.action == "keep" for edit in carried_out(tmp_path, host).edits)
    carried_out(tmp_path, host, remove=True)

    assert during != before
    assert tree(tmp_path) == before
    assert list((tmp_path / "records").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes as on POSIX")
def test_a_link_stays_a_link_and_permissions_stay(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real = tmp_path / "dotfiles/settings.json"
    real.write_bytes(b"{}\n")
    real.chmod(0o640)
    (tmp_path / ".claude").mkdir()
    link = tmp_path / ".claude/settings.json"
    link.symlink_to(real)

    carried_out(tmp_path, "claude-code")

    assert link.is_symlink()
    assert b"scrubjay-hook" in real.read_bytes()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / ".claude.json").stat().st_mode) == 0o600


def test_a_host_whose_second_file_is_broken_keeps_its_first(tmp_path: Path) -> None:
    (tmp_path / ".claude.json").write_bytes(b'{"projects": {')
    before = tree(tmp_path)

    with pytest.raises(InvalidError, match="nothing was changed"):
        carried_out(tmp_path, "claude-code")

    assert tree(tmp_path) == before


def test_a_file_that_changes_between_plan_and_writing_is_not_overwritten(tmp_path: Path) -> None:
    targets = HOSTS["claude-code"].targets(machine(tmp_path))
    made = plan.installation(targets, files.contents(targets), {})
    (tmp_path / ".claude.json").write_bytes(b'{"numStartups": 2}')

    with pytest.raises(ConflictError, match="meanwhile"):
        files.apply(made, files.Records(tmp_path / "records", "claude-code"))

    assert (tmp_path / ".claude.json").read_bytes() == b'{"numStartups": 2}'
    assert not (tmp_path / ".claude/settings.json").exists()


def test_setting_up_again_after_a_change_keeps_the_change_when_it_is_removed(tmp_path: Path) -> None:
    carried_out(tmp_path, "gemini")
    path = tmp_path / ".gemini/settings.json"
    path.write_bytes(path.read_bytes().replace(b"{", b'{\n  "theme": "dark",', 1))

    carried_out(tmp_path, "gemini")
    carried_out(tmp_path, "gemini", remove=True)

    assert json.loads(path.read_bytes()) == {"theme": "dark"}


def test_a_damaged_record_is_told_of(tmp_path: Path) -> None:
    carried_out(tmp_path, "cursor")
    (tmp_path / "records/cursor.json").write_bytes(b"{")

    with pytest.raises(CorruptError, match=r"cursor\.json is damaged"):
        carried_out(tmp_path, "cursor", remove=True)


def test_a_settings_file_with_comments_in_its_name_is_the_one_that_is_changed(tmp_path: Path) -> None:
    folder = tmp_path / ".config/opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").write_bytes(b"{ // mine\n}\n")

    carried_out(tmp_path, "opencode")

    assert not (folder / "opencode.json").exists()
    assert b"// mine" in (folder / "opencode.jsonc").read_bytes()
    assert b"scrubjay" in (folder / "opencode.jsonc").read_bytes()
