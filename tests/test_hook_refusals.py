"""What hosts report is stored, or its refusal is counted with host, time and reason: never neither."""

from __future__ import annotations

import codecs
import contextlib
import errno
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_shell import Shell
from hook_process import FIXTURES, Home, prompt
from scrubjay import api, hosts, refusals, spool
from scrubjay.api.caller import HOST, PERSON
from scrubjay.daemon import control
from scrubjay.ingest import payloads
from scrubjay.ingest.payloads import UnreadableError
from scrubjay.policy import DaemonPolicy
from scrubjay.service.application import Application
from scrubjay_shared.errors import InvalidError, UnavailableError
from scrubjay_shared.records import EventType

pytestmark = pytest.mark.anyio

EVENT = "UserPromptSubmit"
NOW = 1_795_446_106_169


def report(text: str, **fields: Any) -> dict[str, Any]:
    """Return what a host sends for what a person typed."""
    return {"session_id": "s", "cwd": "/p", "hook_event_name": EVENT, "prompt": text} | fields


def raw(text: str) -> bytes:
    """Return a report whose prompt is spelled as a host without an encoder of JSON does."""
    return json.dumps(report("%")).replace("%", text).encode()


NEARLY = {
    "a raw line break": (raw("We chose\nmariadb."), "We chose\nmariadb."),
    "a raw tab and bell": (raw("We chose\tmaria\x07db."), "We chose\tmaria\x07db."),
    "a backslash that escapes nothing": (raw(r"sed s/[\.]/-/ \d+"), r"sed s/[\.]/-/ \d+"),
    "a cut escape of a character": (raw(r"\u12 is no letter"), r"\u12 is no letter"),
    "a byte of Latin-1": (raw("a caf%").replace(b"%", b"\xe9"), "a caf\N{REPLACEMENT CHARACTER}"),
    "half of a character": (raw("half \\ud83d"), "half \N{REPLACEMENT CHARACTER}"),
    "a byte order mark": (codecs.BOM_UTF8 + raw("marked"), "marked"),
    "UTF-16": (json.dumps(report("wide")).encode("utf-16"), "wide"),
    "UTF-16 without a mark": (json.dumps(report("wide")).encode("utf-16-le"), "wide"),
    "a zero byte behind it": (raw("ended") + b"\0", "ended"),
    "a line of a log before it": (b"[INFO] hook runs\n" + raw("after a log"), "after a log"),
    "a line of a log behind it": (raw("before a log") + b"\ndone.\n", "before a log"),
    "a list around it": (b"[" + raw("listed") + b"]", "listed"),
    "a text around it": (json.dumps(json.dumps(report("quoted"))).encode(), "quoted"),
    "a number of a session": (json.dumps(report("numbered", session_id=12345)).encode(), "numbered"),
    "an object of a session": (json.dumps(report("held", session_id={"id": "s1"})).encode(), "held"),
    "a prompt in an object": (json.dumps(report("", prompt={"text": "inside"})).encode(), "inside"),
    "a prompt as a message": (
        json.dumps(report("", prompt={"role": "user", "content": [{"type": "text", "text": "said"}]})).encode(),
        "said",
    ),
    "a prompt as texts": (json.dumps(report("", prompt=["one", "two"])).encode(), "one\ntwo"),
    "a prompt that is a number": (json.dumps(report("", prompt=8080)).encode(), "8080"),
    "an event of another name": (json.dumps(report("named", hook_event_name="Prompt?")).encode(), "named"),
}


@pytest.mark.parametrize(("data", "text"), NEARLY.values(), ids=NEARLY)
async def test_a_report_that_is_nearly_json_is_stored(
    service: Application, store_path: Path, data: bytes, text: str
) -> None:
    await service.call(HOST, "hook", api.HookRequest(host="claude-code", event=EVENT, data=data))

    [event] = (await service.call(PERSON, "events", api.EventsRequest())).events
    assert event.text == text
    assert refusals.counted(store_path.parent, now=NOW) == []


async def test_reports_in_one_write_are_each_stored(service: Application) -> None:
    data = raw("The first.") + raw("The second.")

    await service.call(HOST, "hook", api.HookRequest(host="claude-code", event=EVENT, data=data))

    stored = (await service.call(PERSON, "events", api.EventsRequest())).events
    assert sorted(event.text for event in stored) == ["The first.", "The second."]


REFUSED = {
    "cut off": (raw("cut")[:-9], "not_json"),
    "no object": (b"8080", "not_an_object"),
    "nested without an end": (b'{"a":' * 100_000, "too_deep"),
    "without a session": (json.dumps({"prompt": "Whose?"}).encode(), "no_session"),
    "without a prompt": (json.dumps({"session_id": "s", "promt": "Misspelled."}).encode(), "no_prompt"),
    "a prompt of no shape": (json.dumps(report("", prompt={"b64": "QQ=="})).encode(), "unreadable"),
}


@pytest.mark.parametrize("way", ["at once", "by the spool"])
@pytest.mark.parametrize(("data", "reason"), REFUSED.values(), ids=REFUSED)
async def test_what_is_refused_is_counted_with_host_time_and_reason(
    service: Application, store_path: Path, data: bytes, reason: str, way: str
) -> None:
    folder, before = store_path.parent, time.time() * 1000
    if way == "at once":
        with contextlib.suppress(InvalidError):
            await service.call(HOST, "hook", api.HookRequest(host="codex", event=EVENT, data=data))
    else:
        home = {"event": EVENT, "sent": "1", "project": "/p"}
        try:
            kept_by_the_hook(folder, home, data)
        except UnreadableError as error:
            refusals.count(folder, "codex", refusals.reason_of(error))
        await service.call(PERSON, "run_job", api.JobRequest(name="spool"))

    [one] = refusals.counted(folder, now=int(time.time() * 1000))
    assert (one.host, one.reason) == ("codex", reason)
    assert one.ts >= before - 1
    assert not (await service.call(PERSON, "events", api.EventsRequest())).events
    assert (await service.call(PERSON, "stats", api.Nothing())).refused_reports == 1


def kept_by_the_hook(folder: Path, fields: dict[str, str], data: bytes) -> None:
    """Keep a payload as the hook's child does."""
    from scrubjay_hook.away import _kept  # noqa: PLC0415

    _kept(str(folder), "codex", fields, data)


async def test_a_report_on_trial_is_not_counted(service: Application, store_path: Path) -> None:
    with pytest.raises(UnreadableError):
        await service.call(HOST, "hook", api.HookRequest(host="codex", data=b"{", trial=True))

    assert refusals.counted(store_path.parent, now=NOW) == []


PROMPTS = [
    one
    for one in map(json.loads, FIXTURES.read_text(encoding="utf-8").splitlines())
    for seen in [hosts.normalise(one["host"], one["payload"], event=one["event"])]
    if any(draft.type is EventType.USER_MESSAGE for draft in seen.drafts)
]
SPLICES = st.sampled_from([b"", b"\n", b"\t", b"\\", b'"', b"{", b"}", b"[", b",", b"\xe9", b"\0", b"\\.", b"7", b"  "])


@given(st.sampled_from(PROMPTS), st.data())
def test_whatever_happens_to_a_prompts_bytes_it_is_stored_or_counted(
    fixture: dict[str, Any], data: st.DataObject
) -> None:
    spelled = json.dumps(fixture["payload"]).encode()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(spelled)))
        spelled = spelled[:at] + data.draw(SPLICES) + spelled[at + data.draw(st.integers(0, 2)) :]

    assert outcome(fixture, spelled)


ODD = st.sampled_from(
    [None, 5, 1.5, True, [], {}, ["Use uv."], {"text": "Use uv."}, [[1]], "\ud800", {"a": [{}]}, 1e300]
)


@given(st.sampled_from(PROMPTS), st.data())
def test_whatever_stands_in_a_members_place_the_prompt_is_stored_or_counted(
    fixture: dict[str, Any], data: st.DataObject
) -> None:
    payload = dict(fixture["payload"])
    payload[data.draw(st.sampled_from([*payload, "prompt", "session_id", "hook_event_name", "cwd"]))] = data.draw(ODD)

    assert outcome(fixture, json.dumps(payload).encode())


def outcome(fixture: dict[str, Any], data: bytes) -> bool:
    """Say whether every report that the bytes hold is stored as the person's words, or counted."""
    try:
        found, more = payloads.all_parsed(data)
    except UnreadableError as error:
        return bool(error.reason)
    seen = [hosts.normalise(fixture["host"], each, event=fixture["event"]) for each in found]
    said = [any(draft.type is EventType.USER_MESSAGE for draft in one.drafts) for one in seen]
    # An empty list of parts is what a host sends for a picture alone.
    return more or all(held or one.dropped in {*hosts.REFUSED, "empty"} for held, one in zip(said, seen, strict=True))


# Processes


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with a daemon."""
    home = Home(tmp_path_factory.mktemp("up"))
    control.start(home.settings, policy=DaemonPolicy(start_seconds=90.0))
    yield home
    control.stop(home.settings)


def reasons(home: Home) -> list[tuple[str, str]]:
    """Return hosts and reasons of what was refused in a home."""
    return [(one.host, one.reason) for one in refusals.counted(home.data, now=int(time.time() * 1000))]


def test_the_hook_says_nothing_of_a_refusal_and_it_is_counted_once(running: Home) -> None:
    done = running.hook("gemini", "BeforeAgent", payload=b'{"session_id": "x", "prompt": "cut')

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert reasons(running) == [("gemini", "not_json")]


def test_the_hook_counts_what_it_refuses_itself_and_the_doctor_tells_it(shell: Shell) -> None:
    home = Home(shell.home)
    home.data.mkdir(parents=True)
    (home.data / "spool").write_text("no folder")

    done = home.hook("claude-code", EVENT, payload=b'{"cut')
    home.until(lambda: len(reasons(home)) == 1, "the first refusal is counted")
    home.hook("claude-code", EVENT, payload=prompt("s", "The secret word is zanzibar."))
    home.until(lambda: len(reasons(home)) == 2, "the second refusal is counted")

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert reasons(home)[0] == ("claude-code", "not_json")
    assert "zanzibar" not in (home.data / refusals.FILE_NAME).read_text()
    (home.data / "spool").unlink()
    [row] = [one for one in json.loads(shell.run("doctor")[1])["checks"] if "not kept" in one["found"]]
    assert row["state"] == "warn"
    assert "2 reports of claude-code not kept" in row["found"]
    assert "1 not_json" in row["found"]


def test_what_a_full_disk_made_hooks_drop_is_told_with_what_helps(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shell.home / "data"
    monkeypatch.setattr(spool, "LEAST_FREE_BYTES", 2**62)
    with pytest.raises(spool.NotKeptError) as caught:
        kept_by_the_hook(folder, {"event": EVENT, "sent": "1", "project": "/p"}, raw("It has no room."))
    refusals.count(folder, "codex", refusals.reason_of(caught.value))

    found = json.loads(shell.run("doctor")[1])["checks"]

    [row] = [one for one in found if "not kept" in one["found"]]
    assert "1 report of codex not kept" in row["found"]
    assert "little_space" in row["found"]
    assert "free some space" in row["todo"]
    assert not spool.waiting(folder)


@pytest.mark.parametrize(
    ("number", "hint"), [(errno.ENOSPC, "free some space"), (errno.EACCES, "check the permissions")]
)
def test_a_report_that_cannot_be_written_says_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, hint: str
) -> None:
    def fails(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(UnavailableError) as caught:
        kept_by_the_hook(tmp_path, {"event": EVENT, "sent": "1", "project": "/p"}, raw("It has no room."))

    assert hint in caught.value.hint
    assert not spool.waiting(tmp_path)


def test_refusals_are_bounded_and_forgotten_after_a_month(tmp_path: Path) -> None:
    for number in range(9_000):
        refusals.count(tmp_path, f"host {number}\nforged", "not_json")

    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2 * refusals.MOST_BYTES + 200
    now = int(time.time() * 1000)
    found = refusals.counted(tmp_path, now=now)
    assert len(found) > 2_000
    assert {one.reason for one in found} == {"not_json"}
    assert refusals.counted(tmp_path, now=now + (refusals.DAYS + 1) * 86_400_000) == []


@pytest.mark.parametrize("kind", ["digits", "bytes", "pipe", "folder"])
def test_a_count_that_is_damaged_stops_neither_hooks_nor_the_doctor(tmp_path: Path, kind: str) -> None:
    path = tmp_path / refusals.FILE_NAME
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"9" * 5_000 + b" codex not_json\n" if kind == "digits" else bytes(range(256)) * 9)

    with contextlib.suppress(UnreadableError, OSError):
        kept_by_the_hook(tmp_path, {"event": EVENT, "sent": "1", "project": "/p"}, raw("Kept.") + b'{"cut')

    assert [spool.read(path, now=NOW).payload["prompt"] for path in spool.waiting(tmp_path)] == ["Kept."]
    counted = refusals.counted(tmp_path, now=NOW)
    assert [one.reason for one in counted] == ([] if kind in {"pipe", "folder"} else ["not_json"])


def test_of_several_reports_one_that_cannot_be_kept_costs_no_other(tmp_path: Path) -> None:
    deep = raw("Deep.").replace(b'"/p"', b'{"a":' * 90 + b"1" + b"}" * 90)

    with contextlib.suppress(InvalidError):
        kept_by_the_hook(tmp_path, {"event": EVENT, "sent": "1", "project": "/p"}, deep + raw("Kept."))

    assert "Kept." in [spool.read(path, now=NOW).payload["prompt"] for path in spool.waiting(tmp_path)]


@pytest.mark.parametrize("part", ["{}", "[x", '["', '{"a":"\\."}', '[{"a":1},', "x [", "\0", "[]"])
def test_a_payload_is_read_in_linear_time(part: str) -> None:
    data = part.encode() * (512 * 1024 // len(part))
    began = time.process_time()

    with contextlib.suppress(UnreadableError):
        payloads.all_parsed(data)

    assert time.process_time() - began < 3


# The spool


def planted(folder: Path, kind: str) -> None:
    """Put a file into the spool that cannot be read as a report."""
    path = folder / "spool" / f"0000000000001-1-{kind.replace(' ', '')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {"host": "codex", "event": EVENT, "sent": 1, "project": "", "payload": {"session_id": "s"}}
    match kind:
        case "a folder":
            path.mkdir()
            (path / "within").write_text("x")
        case "a pipe":
            os.mkfifo(path)
        case "a socket":
            with contextlib.chdir(path.parent):  # an address of a socket has at most 107 bytes
                socket.socket(socket.AF_UNIX).bind(path.name)
        case "a link":
            path.symlink_to("/etc/hostname")
        case "a link to a device":
            path.symlink_to("/dev/zero")
        case "a dangling link":
            path.symlink_to("/nowhere")
        case "a closed file":
            path.write_text(json.dumps(whole))
            path.chmod(0)
        case "a host without a name":
            path.write_text(json.dumps(whole | {"host": ""}))
        case "nothing":
            path.write_text("")
        case _:
            path.write_text(json.dumps(whole | {"payload": 5}))


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(
    "kind",
    [
        "a folder",
        "a pipe",
        "a socket",
        "a link",
        "a link to a device",
        "a dangling link",
        "a host without a name",
        "nothing",
        "another shape",
        pytest.param("a closed file", marks=pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")),
    ],
)
async def test_a_file_of_the_spool_that_cannot_be_read_costs_itself_alone(
    service: Application, store_path: Path, kind: str
) -> None:
    folder = store_path.parent
    planted(folder, kind)
    spool.write(
        folder, spool.Report(host="codex", event=EVENT, sent=2, project="/p", payload=report("It comes later."))
    )

    await service.call(PERSON, "run_job", api.JobRequest(name="spool"))

    [event] = (await service.call(PERSON, "events", api.EventsRequest())).events
    assert event.text == "It comes later."
    assert not spool.waiting(folder)
    assert len(list((folder / "spool").iterdir())) == 1
    assert len(refusals.counted(folder, now=int(time.time() * 1000))) == 1


@pytest.mark.parametrize("sent", [1e30, -5, 2**62, -(2**62)])
async def test_a_time_that_cannot_be_costs_no_report(service: Application, store_path: Path, sent: float) -> None:
    folder = store_path.parent / "spool"
    folder.mkdir()
    whole = {"host": "codex", "event": EVENT, "sent": sent, "project": "", "payload": report("Whenever.")}
    (folder / "0000000000001-1-aaaaaaaa.json").write_text(json.dumps(whole))

    await service.call(PERSON, "run_job", api.JobRequest(name="spool"))

    assert [each.text for each in (await service.call(PERSON, "events", api.EventsRequest())).events] == ["Whenever."]
