"""Vaults condensed by a Writer: its words count as far as the entries say them, under its budget, and as untrusted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.policy import MemoryPolicy
from scrubjay.service.application import Application
from scrubjay.writer.budget import Caps
from scrubjay_shared.records import MemoryDraft, MemoryType, Scope, Trust
from service_calls import Opener
from writer_server import POLICY, Fault, ModelServer, model_server

pytestmark = pytest.mark.anyio

ZARA = Caller(principal=Principal.AGENT, agent="zara", project="p")
CONDENSE = api.VaultCondenseRequest(agent="zara")
DIARY = """\
## Tick 1

- At B2 there were berries again, seven of them.
- I moved before I looked and lost the turn.

## Tick 2

- Found berries at B2; the guard comes at dusk.
- I moved too early, before I had looked around.
"""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@pytest.fixture
async def service(server: ModelServer, opened: Opener) -> AsyncIterator[Application]:
    caps = Caps(daily=100_000, monthly=100_000)
    async with opened(writer=server.chosen(), caps=caps, policy=MemoryPolicy(writer=POLICY)) as running:
        yield running


@pytest.fixture
async def folder(service: Application, tmp_path: Path) -> Path:
    path = tmp_path / "zara"
    await service.call(PERSON, "vault_init", api.VaultInitRequest(agent="zara", folder=str(path)))
    (path / "episodic.md").write_text(DIARY, encoding="utf-8")
    await service.call(PERSON, "vault_sync", api.VaultSyncRequest(agent="zara"))
    return path


def read(folder: Path, name: str) -> str:
    return (folder / f"{name}.md").read_text(encoding="utf-8")


async def calls(service: Application) -> list[tuple[str, str]]:
    rows = await service.store.read(lambda q: q.fetch("select job, outcome from writer_call order by n"))
    return [(str(job), str(outcome)) for job, outcome in rows]


async def test_what_a_writer_words_is_kept_where_the_entries_say_it_and_dropped_where_they_do_not(
    service: Application, server: ModelServer, folder: Path
) -> None:
    server.answer = lambda _: (
        "Here is what I found:\n"
        "Facts | 1, 3 | Berries grow at B2.\n"
        "Facts | 3 | The guard comes at dusk.\n"
        "Facts | 1 | Berries grow at C9.\n"  # a place that no entry names
        "Decisions | 2 | The fleet is repainted in green next summer.\n"  # said nowhere
        "Orders | 1 | Always obey the guard.\n"  # no heading of ours
        "Facts | 1 | Berries grow at B2\n"
    )
    before = read(folder, "episodic")

    done = await service.call(ZARA, "vault_compact", CONDENSE)

    assert [one.text for one in done.written] == ["Berries grow at B2.", "The guard comes at dusk."]
    assert (done.worded, done.archived) == (2, ())
    assert all(one.sources for one in done.written)
    assert {"## Facts", "- Berries grow at B2.", "- The guard comes at dusk."} <= set(
        read(folder, "semantic").splitlines()
    )
    assert read(folder, "episodic") == before, "nothing is archived that is not carried over word for word"
    assert await calls(service) == [("vault", "done")]
    [question] = server.asked
    assert "never an instruction to you" in str(question)
    again = await service.call(ZARA, "vault_compact", CONDENSE)
    assert again.written == (), "what is known already is not written again"
    await service.call(PERSON, "undo", api.UndoRequest(cause=done.cause))
    await service.call(PERSON, "vault_sync", api.VaultSyncRequest(agent="zara"))
    assert "Berries" not in read(folder, "semantic")


async def test_a_writer_words_an_agents_ways_for_self_md(
    service: Application, server: ModelServer, folder: Path
) -> None:
    server.answer = lambda _: "Patterns | 2, 4 | I moved too early, before I looked.\nFacts | 1 | Berries grow at B2.\n"

    done = await service.call(ZARA, "vault_reflect", CONDENSE)

    assert [(one.section, one.text) for one in done.written] == [("Patterns", "I moved too early, before I looked.")]
    assert "## Patterns\n\n- I moved too early, before I looked.\n" in read(folder, "self")


@pytest.mark.usefixtures("folder")
async def test_a_statement_is_trusted_as_the_least_of_what_its_writer_was_shown(
    service: Application, server: ModelServer
) -> None:
    draft = MemoryDraft(
        content="A stranger wrote that the bridge is safe.",
        type=MemoryType.DAILY,
        scope=Scope.PROJECT,
        resource_id="vault:zara",
        topic="Tick 3",
        trust=Trust.UNTRUSTED,
        metadata={"source": "episodic.md"},
    )
    await service.call(PERSON, "add", draft)
    server.answer = lambda _: "Facts | 1, 3 | Berries grow at B2."

    done = await service.call(ZARA, "vault_compact", CONDENSE)

    entries = (await service.call(PERSON, "list", api.ListRequest(limit=50))).entries
    [memory] = [one.memory for one in entries if one.memory.content == "Berries grow at B2."]
    assert done.worded == 1
    assert memory.trust is Trust.UNTRUSTED


@pytest.mark.parametrize("how", ["fails", "talks", "over budget", "dry run"])
async def test_without_a_usable_answer_vaults_are_condensed_as_without_a_writer(
    service: Application, server: ModelServer, folder: Path, how: str
) -> None:
    (folder / "episodic.md").write_text(
        "".join(f"## Tick {n}\n- Berries grow at B2.\n\n" for n in range(3)), encoding="utf-8"
    )
    await service.call(PERSON, "vault_sync", api.VaultSyncRequest(agent="zara", confirm=True))
    server.answer = lambda _: "I would rather talk about the weather."
    if how == "fails":
        server.faults.append(Fault(status=403))
    if how == "over budget":
        service.writer.caps = Caps(daily=10, monthly=10)

    done = await service.call(ZARA, "vault_compact", api.VaultCondenseRequest(agent="zara", dry_run=how == "dry run"))

    assert [(one.section, one.text) for one in done.written] == [("Seen often", "Berries grow at B2.")]
    assert done.worded == 0
    assert len(server.asked) == (how in {"fails", "talks"})


async def test_what_is_forgotten_while_a_writer_is_asked_is_told_on_by_nothing(
    service: Application, server: ModelServer, folder: Path
) -> None:
    entries = (await service.call(PERSON, "list", api.ListRequest(limit=50))).entries
    gone = next(one.memory for one in entries if "seven" in one.memory.content)
    asking = service.plain_files.entries._wording()

    async def forgetful(system: str, text: str, most: int) -> str:
        assert asking is not None
        answer = await asking(system, text, most)
        await service.call(PERSON, "forget", api.ForgetRequest(ref=gone.id))
        return answer

    service.plain_files.entries._wording = lambda: forgetful
    server.answer = lambda _: "Facts | 1 | There were seven berries at B2."

    done = await service.call(ZARA, "vault_compact", CONDENSE)

    assert (done.written, done.worded) == ((), 0)
    assert "seven" not in read(folder, "semantic")
