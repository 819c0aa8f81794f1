"""A disk that flips bits: `doctor --deep` finds every one that says something, and no command answers "internal"."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import os
import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from damaged import flip, live_bytes, said_by
from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.cli import main
from scrubjay.service.application import Application
from scrubjay.store import Remedy, check, find_damage, tables
from scrubjay_io.sqlite import driver
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft
from scrubjay_shared.scoring import encode_vector

Opener = Callable[..., AbstractAsyncContextManager[Application]]
NOW = Millis(1_800_000_000_000)
STORES = int(os.environ.get("SCRUBJAY_DAMAGED_STORES", "6"))
SEED = int(os.environ.get("SCRUBJAY_DAMAGE_SEED", "1"))
COMMANDS = (
    ("list",),
    ("recall", "harbour paint"),
    ("why", "drinks"),
    ("stats",),
    ("events",),
    ("export",),
    ("backup", "{folder}/copy.db"),
    ("doctor",),
    ("rebuild",),
)


async def fill(path: Path) -> None:
    """Leave a closed store with something in every table that a machine of its own fills."""
    service = await Application.open(path, models_dir=path.parent, model="none")
    for session in range(3):
        drafts = tuple(
            EventDraft(
                agent="test",
                session_id=f"s{session}",
                type=EventType.USER_MESSAGE,
                text=f"We decided to paint boat {n} blue in the harbour of Oslo, please remember. "
                + "x" * (n * 97 % 900),
                ts=Millis(NOW + session * 100_000 + n),
                project="quay" if n % 2 else None,
                metadata={"place": f"pier {n}"},
            )
            for n in range(30)
        )
        await service.call(PERSON, "ingest", api.IngestRequest(events=drafts, learn=session < 2))
    await service.call(
        PERSON,
        "ingest",
        api.IngestRequest(
            events=(
                EventDraft(
                    agent="test", session_id="s9", type=EventType.TOOL_RESULT, text="long output " * 2_000, ts=NOW
                ),
            )
        ),
    )
    await service.call(PERSON, "settle", api.SettleRequest())
    await service.call(PERSON, "add", MemoryDraft(content="Maya drinks tea", name="drinks", aliases=("tea",)))
    for n in range(20):
        await service.call(PERSON, "add", MemoryDraft(content=f"the ferry number {n} leaves at six", name=f"ferry-{n}"))
    await service.call(PERSON, "forget", api.ForgetRequest(ref="ferry-3"))
    await service.call(PERSON, "set_identity", api.SlotRequest(key="name", value="Ada"))
    await service.call(PERSON, "recall", api.RecallRequest(query="ferry"))
    await service.recall_counts.run()
    draw = np.random.default_rng(1)
    space = await service.store.write(lambda tx: tx.vectors.enter_space("a model"))
    waiting = await service.store.read(lambda q: q.embed_queue.first(10_000))
    vectors = [
        (one.owner, one.said, encode_vector(draw.integers(-127, 127, 384, dtype=np.int8), 0.01)) for one in waiting
    ]
    await service.store.write(lambda tx: tx.vectors.put(space, vectors))
    await service.maintain.run()
    await service.close()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store without damage and without a log."""
    path = tmp_path_factory.mktemp("sound") / "memory.db"
    asyncio.run(fill(path))
    with closing(driver.connect(str(path), isolation_level=None)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    return path


def found_in(path: Path) -> list[Any]:
    return list(find_damage(path, lambda *_: None))


def run(home: Path, *words: str) -> tuple[int, str, str]:
    """Run a command in this process on the store of a home, as a person does without a daemon."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    logging.getLogger().handlers.clear()  # one of a test before writes to a stream that is closed by now
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["--home", str(home), "--json", *words])
    out.flush()
    return code, out.buffer.getvalue().decode(), err.getvalue()


def test_a_sound_store_has_no_damage(sound: Path) -> None:
    assert check(sound) == []
    assert found_in(sound) == []


def test_every_table_is_sealed_or_derived(sound: Path) -> None:
    derived = {
        "tombstone",
        "tombstone_key",
        "tombstone_words",
        "memory",
        "name",
        "claim",
        "grip",
        "conflict",
        "counted",
        "session",
        "session_agent",
        "also_from",
        "unembedded",
    }
    with closing(driver.connect(str(sound))) as connection:
        made = {
            row[0]
            for row in connection.execute("select name from sqlite_schema where type = 'table'")
            if not row[0].startswith(("memory_fts", "sqlite_"))
        }

    assert made == derived | set(tables.CHECKSUMMED)


def test_every_row_is_sealed_when_it_is_written(sound: Path) -> None:
    with closing(driver.connect(str(sound))) as connection:
        for table in tables.CHECKSUMMED:
            assert connection.execute(f"select count(*) from {table} where crc is null").fetchone() == (0,), table


@pytest.mark.parametrize(
    ("sql", "what", "remedy"),
    [
        ("update event set text = 'We decided nothing', erased = erased + 1 where n = 5", "event ", Remedy.RESTORE),
        ("update op set body = zeroblob(40) where type = 2 and seq = 92", "op 92", Remedy.RESTORE),
        ("update op set hlc = hlc + 1 where seq = 7", "op 7", Remedy.RESTORE),
        ("update meta set value = 'other' where key = 'store_id'", "setting store", Remedy.RESTORE),
        ("update embedding set vector = zeroblob(390)", "the vector of", Remedy.VECTORS),
        ("update memory set content = 'Maya drinks mud' where name = 'drinks'", "memory ", Remedy.REBUILD),
        ("update name set memory_id = 'nobody' where name = 'tea'", "name tea", Remedy.REBUILD),
        ("update session set events = events + 1 where id = 's1'", "session s1", Remedy.REBUILD),
        ("update grip set excerpt = 'other' where id = (select min(id) from grip)", "grip ", Remedy.REBUILD),
        ("update memory_fts_content set c0 = upper(c0) where id = 9", "the full text of memory", Remedy.REBUILD),
        ("update access set total = total + 64", "a row of table access", Remedy.RESTORE),
    ],
)
def test_what_changed_behind_our_back_is_named_with_what_brings_it_back(
    sound: Path, tmp_path: Path, sql: str, what: str, remedy: Remedy
) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(sound, path)
    with closing(driver.connect(str(path), isolation_level=None)) as connection:
        assert connection.execute(sql).rowcount > 0

    found = found_in(path)

    assert found
    assert {damage.remedy for damage in found} == {remedy}
    assert all(damage.what.startswith(what) for damage in found), found


@pytest.mark.parametrize(
    ("sql", "remedy"),
    [
        ("update memory_fts_data set block = zeroblob(length(block)) where id > 10", ("rebuild",)),
        pytest.param("update memory_fts_content set c0 = upper(c0)", ("rebuild",), marks=pytest.mark.slow),
        pytest.param("update memory set content = 'Maya drinks mud'", ("rebuild",), marks=pytest.mark.slow),
        pytest.param("update session set title = cast(x'c3ff41' as text)", ("rebuild",), marks=pytest.mark.slow),
        ("update grip set excerpt = cast(x'c3ff41' as text)", ("rebuild",)),
        pytest.param("update memory set content = cast(x'c3ff41' as text)", ("rebuild",), marks=pytest.mark.slow),
        pytest.param(
            "update name set name = cast(x'c3ff41' as text) where name = 'tea'", ("rebuild",), marks=pytest.mark.slow
        ),
        ("update embedding set vector = zeroblob(390)", ("rebuild", "--vectors")),
        pytest.param(
            "update embedding set content_hash = cast(x'c3ff41' as text)",
            ("rebuild", "--vectors"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_the_doctor_says_to_do_brings_back_what_is_derived(
    sound: Path, tmp_path: Path, sql: str, remedy: tuple[str, ...]
) -> None:
    path = tmp_path / "data" / "memory.db"
    path.parent.mkdir()
    shutil.copy(sound, path)
    with closing(driver.connect(str(path), isolation_level=None)) as connection:
        assert connection.execute(sql).rowcount > 0

    code, out, _ = run(tmp_path, "doctor", "--deep")
    todo = [check["todo"] for check in json.loads(out)["checks"] if check["state"] == "fail"]

    assert code == 7
    assert todo
    assert all(f"scrubjay {' '.join(remedy)} " in one for one in todo), todo
    assert run(tmp_path, *remedy)[0] == 0
    assert run(tmp_path, "doctor", "--deep")[0] == 0


def test_a_restored_backup_has_no_damage(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "data" / "memory.db"
    path.parent.mkdir()
    shutil.copy(sound, path)
    with closing(driver.connect(str(path), isolation_level=None)) as connection:
        connection.execute("update op set body = zeroblob(40) where type = 2 and seq = 92")
    assert run(tmp_path, "doctor")[0] == 0
    code, out, _ = run(tmp_path, "doctor", "--deep")
    (failed,) = [check for check in json.loads(out)["checks"] if check["state"] == "fail"]

    assert code == 7
    assert failed["found"].startswith("op 92 of device")
    assert "scrubjay restore FILE" in failed["todo"]
    assert run(tmp_path, "restore", str(sound))[0] == 0
    assert run(tmp_path, "doctor", "--deep")[0] == 0


def test_damage_in_a_row_is_corrupt_with_what_to_do_and_quotes_no_text(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "data" / "memory.db"
    path.parent.mkdir()
    for column, value in (("text", "cast(x'c3ff41' || text as text)"), ("metadata", "'{'"), ("type", "'nonsense'")):
        shutil.copy(sound, path)
        with closing(driver.connect(str(path), isolation_level=None)) as connection:
            connection.execute(f"update event set {column} = {value}, erased = erased + 1 where n = 5")

        for command in ("events", "export"):
            code, _, err = run(tmp_path, command)
            error = json.loads(err.splitlines()[-1])

            assert (code, error["code"]) == (7, "corrupt"), (column, command)
            assert "scrubjay doctor --deep" in error["hint"]
            assert "boat" not in err


def test_a_store_with_a_damaged_setting_is_refused(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "data" / "memory.db"
    path.parent.mkdir()
    for sql in (
        "update meta set key = 'devicd' where key = 'device'",
        "update meta set value = 'x' where key = 'device'",
    ):
        shutil.copy(sound, path)
        with closing(driver.connect(str(path), isolation_level=None)) as connection:
            connection.execute(sql)

        code, _, err = run(tmp_path, "list")

        assert code == 7
        assert "settings" in json.loads(err)["message"]
        assert "scrubjay restore FILE" in json.loads(err)["hint"]


def damage_of(store: int, sound: Path, home: Path) -> tuple[list[str], list[int]]:
    """Copy the sound store into a home with one to four bits flipped in what its cells say; return which and where."""
    draw = random.Random(f"{SEED}/{store}")
    (home / "data").mkdir(parents=True)
    path = home / "data" / "memory.db"
    shutil.copy(sound, path)
    spans = [span for span in live_bytes(path) if span.end > span.start]
    trees = sorted({span.tree for span in spans})
    bits, names = [], []
    for _ in range(draw.randint(1, 4)):
        if draw.random() < 0.5:  # by weight of bytes, or every tree alike: small ones must be hit too
            chosen = draw.choices(spans, [span.end - span.start for span in spans])[0]
        else:
            tree = draw.choice(trees)
            chosen = draw.choice([span for span in spans if span.tree == tree])
        bits.append(draw.randrange(chosen.start * 8, chosen.end * 8))
        names.append(chosen.tree)
    flip(path, bits)
    return names, bits


@pytest.mark.slow
def test_every_flipped_bit_is_found_and_no_command_answers_internal(sound: Path, tmp_path: Path) -> None:
    said = said_by(sound)
    unseen: list[Any] = []
    harmless: list[Any] = []
    surprised: list[Any] = []
    answers: Counter[Any] = Counter()
    for store in range(STORES):
        home = tmp_path / f"home-{store}"
        names, bits = damage_of(store, sound, home)
        before = (home / "data" / "memory.db").read_bytes()
        code, out, err = run(home, "doctor", "--deep")
        failed = [one for one in json.loads(out)["checks"] if one["state"] == "fail"] if out else []
        if code != 7 or not failed or not all(one["todo"] for one in failed):
            same = code == 0 and said_by(home / "data" / "memory.db") == said
            (harmless if same else unseen).append((store, names, bits, code, err))
        assert (home / "data" / "memory.db").read_bytes() == before
        for command in COMMANDS:
            code, _, err = run(home, *(word.format(folder=home) for word in command))
            answers[command[0], code] += 1
            if code not in {0, 3, 7} or "Traceback" in err or '"internal"' in err:
                surprised.append((store, names, command, code, err))
            if command == ("rebuild",):
                break
            (home / "data" / "memory.db").write_bytes(before)
            for left in ("-wal", "-shm", ".index"):
                (home / "data" / f"memory.db{left}").unlink(missing_ok=True)
        shutil.rmtree(home)
    sys.stderr.write(
        f"\n{STORES} stores: {len(unseen)} unseen, {len(harmless)} that change nothing that is read,"
        f" {len(surprised)} surprised; {sorted(answers.items())}\n"
    )
    for one in (*unseen, *harmless, *surprised):
        sys.stderr.write(f"{one}\n")

    assert not unseen
    assert not surprised


def healed(home: Path) -> tuple[str, str, list[str]]:
    """Do what the doctor says about a damaged store: return the verb, the state after it, and what it says is lost."""
    _, out, err = run(home, "doctor", "--deep")
    assert out, err
    failed = [one for one in json.loads(out)["checks"] if one["state"] == "fail"]
    verbs = {verb for one in failed for verb in VERBS if f"{verb} " in one["todo"]}
    verb = max(verbs, key=len, default="")
    assert len({one["todo"] for one in failed}) <= 1, failed
    if verb == "scrubjay restore FILE":
        return verb, "", [one["found"] for one in failed]
    lost: list[str] = []
    if verb:
        code, out, err = run(home, *verb.split()[1:])
        assert code == 0, (verb, failed, err)
        lost = list(json.loads(out).get("lost", []))
    code, out, _ = run(home, "doctor", "--deep")
    assert code == 0, (verb, [one for one in json.loads(out)["checks"] if one["state"] == "fail"])
    return verb, json.loads(run(home, "audit")[1])["state"], lost


VERBS = ("scrubjay rebuild", "scrubjay rebuild --vectors", "scrubjay salvage", "scrubjay restore FILE")


@pytest.mark.slow
def test_what_the_doctor_names_heals_flipped_bits_or_they_are_truly_lost_and_it_says_so(
    sound: Path, tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    (whole / "data").mkdir(parents=True)
    shutil.copy(sound, whole / "data" / "memory.db")
    state = json.loads(run(whole, "audit")[1])["state"]
    outcomes: Counter[Any] = Counter()
    for store in range(STORES):
        home = tmp_path / f"home-{store}"
        names, _ = damage_of(store, sound, home)

        verb, found, lost = healed(home)

        outcomes[verb, found == state, bool(lost)] += 1
        if found != state:
            assert lost, (store, names, verb)
        shutil.rmtree(home)
    sys.stderr.write(f"\n{STORES} stores: {sorted(outcomes.items())}\n")
