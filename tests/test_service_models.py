"""Models over a real store: taken up, left, damaged, half embedded; recall goes on and says what it lacks."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.policy import DEFAULT, MemoryPolicy, RecallWeights, WorkPolicy, weighted
from scrubjay.service.application import Application
from scrubjay.settings import ensure_dirs, load
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, NotFoundError, ScrubjayError
from scrubjay_shared.records import EventDraft, MemoryDraft, content_hash
from service_calls import NOTHING, NOW, Opener, ingest, said

pytestmark = pytest.mark.anyio

REAL = Path(os.environ.get("SCRUBJAY_TEST_MODELS") or Path(__file__).resolve().parents[1] / ".models")
MODEL = "bge-small-en-v1.5"
RERANKER = "ms-marco-MiniLM-L-12-v2"


needs_model = pytest.mark.skipif(not (REAL / MODEL).is_dir(), reason="the model's files are not here")


@needs_model
async def test_a_model_can_be_taken_up_left_and_taken_up_again(opened: Opener) -> None:
    async with opened(models_dir=REAL) as service:
        await service.call(PERSON, "add", MemoryDraft(content="The kitten naps on the couch"))
        await service.call(PERSON, "add", MemoryDraft(content="The server ran out of disk space"))
        question = api.RecallRequest(query="where does the young cat sleep?")
        without = await service.call(PERSON, "recall", question)

        await service.call(PERSON, "use_model", api.ModelRequest(name=MODEL))
        await service.call(PERSON, "settle", api.SettleRequest())
        with_model = await service.call(PERSON, "recall", question)
        stats = await service.call(PERSON, "stats", NOTHING)
        await service.call(PERSON, "use_model", api.ModelRequest(name="none"))
        again = await service.call(PERSON, "recall", question)
    async with opened(models_dir=REAL) as service:
        still = await service.call(PERSON, "recall", question)
        back = await service.call(PERSON, "use_model", api.ModelRequest(name=MODEL))
        at_once = await service.call(PERSON, "recall", question)

    assert without.mode == again.mode == still.mode == "lexical"
    assert without.notes == again.notes == still.notes != ()
    assert (with_model.mode, with_model.notes) == ("hybrid", ())
    assert with_model.hits[0].text == "The kitten naps on the couch"
    assert (stats.embedded, stats.to_embed) == (2, 0)
    assert (back.embedded, back.to_embed) == (2, 0)  # coming back costs nothing
    assert at_once.hits == with_model.hits


needs_reranker = pytest.mark.skipif(not (REAL / RERANKER).is_dir(), reason="the reranking model's files are not here")


@needs_model
@needs_reranker
async def test_the_reranker_takes_part_where_it_is_installed_and_wanted(opened: Opener) -> None:
    lines = [
        ("Ann", "so what happened with the boiler in the end"),
        ("Bob", "the man came on friday and put in a new valve"),
        ("Bob", "boiler boiler boiler, I never want to hear about the boiler again"),
        ("Ann", "fair enough"),
    ]
    drafts = [said(text, metadata={"speaker": who}, ts=Millis(NOW + n)) for n, (who, text) in enumerate(lines)]
    question = api.RecallRequest(query="How was the boiler repaired?", kinds=("event",))
    async with opened(models_dir=REAL, model=MODEL, reranker=RERANKER) as service:
        await ingest(service, *drafts, learn=False)
        await service.call(PERSON, "settle", api.SettleRequest())
        reranked = await service.call(PERSON, "recall", question)
        again = await service.call(PERSON, "recall", question)
        plain = await service.call(PERSON, "recall", replace(question, rerank=False))
        keyword = await service.call(PERSON, "recall", replace(question, mode=api.Mode.KEYWORD))

    gained = {hit.text: hit.parts.get("rerank", 0.0) for hit in reranked.hits}
    assert gained[lines[1][1]] > gained[lines[3][1]]
    assert reranked.stages_ms["rerank"] > 0
    assert reranked.hits == again.hits
    assert reranked.notes == plain.notes == ()
    assert plain.stages_ms["rerank"] == keyword.stages_ms["rerank"] == 0
    assert not any("rerank" in hit.parts for hit in (*plain.hits, *keyword.hits))


@needs_model
@needs_reranker
async def test_a_damaged_reranker_is_said_and_recall_goes_on_without_it(opened: Opener, tmp_path: Path) -> None:
    shutil.copytree(REAL / MODEL, tmp_path / "models" / MODEL)
    shutil.copytree(REAL / RERANKER, tmp_path / "models" / RERANKER)
    (tmp_path / "models" / RERANKER / "tokenizer.json").write_text("{}")
    async with opened(models_dir=tmp_path / "models", model=MODEL, reranker=RERANKER) as service:
        await service.call(PERSON, "add", MemoryDraft(content="The kitten naps on the couch"))
        await service.call(PERSON, "settle", api.SettleRequest())
        answer = await service.call(PERSON, "recall", api.RecallRequest(query="where does the kitten sleep?"))

    assert [hit.text for hit in answer.hits] == ["The kitten naps on the couch"]
    assert any("not reranked" in note for note in answer.notes)


@needs_model
async def test_a_reranker_that_is_not_installed_is_not_worth_a_word(opened: Opener, tmp_path: Path) -> None:
    shutil.copytree(REAL / MODEL, tmp_path / "models" / MODEL)
    async with opened(models_dir=tmp_path / "models", model=MODEL, reranker=RERANKER) as service:
        await service.call(PERSON, "add", MemoryDraft(content="The kitten naps on the couch"))
        await service.call(PERSON, "settle", api.SettleRequest())
        answer = await service.call(PERSON, "recall", api.RecallRequest(query="where does the kitten sleep?"))

    assert (answer.mode, answer.notes) == ("hybrid", ())


@pytest.mark.parametrize("content", [None, "[]", '{"weights": {}}'])
async def test_a_file_that_holds_no_weights_is_refused_by_name(content: str | None, tmp_path: Path) -> None:
    weights = tmp_path / "weights.json"
    if content is not None:
        weights.write_text(content)
    chosen = load(environ={"SCRUBJAY_HOME": str(tmp_path), "SCRUBJAY_RECALL_WEIGHTS": str(weights)})
    ensure_dirs(chosen)

    with pytest.raises(InvalidError, match=r"recall_weights: .*weights.json") as refused:
        await Application.configured(chosen, {})

    assert "bench fit" in refused.value.hint


async def test_weights_from_a_file_are_those_recall_uses(tmp_path: Path) -> None:
    weights = RecallWeights(
        data="d", data_sha256="0", protocol="P2", model=MODEL, weights={"event_dense": 0.25}, folds={}
    )
    (tmp_path / "weights.json").write_bytes(msgspec.json.encode(weights))
    chosen = load(environ={"SCRUBJAY_HOME": str(tmp_path), "SCRUBJAY_RECALL_WEIGHTS": str(tmp_path / "weights.json")})
    ensure_dirs(chosen)

    service = await Application.configured(chosen, {})
    await service.close()

    assert service.policy.recall == weighted(DEFAULT.recall, {"event_dense": 0.25})


@needs_model
async def test_what_is_half_embedded_is_found_whole_and_said(opened: Opener) -> None:
    async with opened(models_dir=REAL, model=MODEL) as service:
        await service.call(PERSON, "add", MemoryDraft(content="The kitten naps on the couch"))
        await service.call(PERSON, "settle", api.SettleRequest())
        await service.call(PERSON, "use_model", api.ModelRequest(name="none"))
        await service.call(PERSON, "add", MemoryDraft(content="The server ran out of disk space"))
        await service.call(PERSON, "use_model", api.ModelRequest(name=MODEL))

        half = await service.call(PERSON, "recall", api.RecallRequest(query="kitten server disk"))
        await service.call(PERSON, "settle", api.SettleRequest())
        whole = await service.call(PERSON, "recall", api.RecallRequest(query="kitten server disk"))

    assert len(half.hits) == 2
    assert "50%" in " ".join(half.notes)
    assert whole.notes == ()


@needs_model
async def test_a_changed_text_is_never_found_by_its_old_meaning(opened: Opener) -> None:
    async with opened(models_dir=REAL, model=MODEL) as service:
        await service.call(PERSON, "add", MemoryDraft(content="The kitten naps on the couch", name="note"))
        await service.call(PERSON, "settle", api.SettleRequest())

        await service.call(PERSON, "update", api.UpdateRequest(ref="note", content="The server ran out of disk space"))
        await service.call(PERSON, "settle", api.SettleRequest())
        answer = await service.call(PERSON, "recall", api.RecallRequest(query="machine without storage"))

        spaces = await service.store.read(lambda q: q.fetch("select owner, content_hash from embedding"))
    assert answer.notes == ()
    assert spaces == [(answer.hits[0].id, content_hash("The server ran out of disk space"))]


@needs_model
async def test_settling_that_ran_out_of_time_loses_no_vector(
    opened: Opener, conversation: tuple[EventDraft, ...]
) -> None:
    async with opened(models_dir=REAL, model=MODEL, policy=MemoryPolicy(work=WorkPolicy(embed_batch=4))) as service:
        await ingest(service, *conversation[:40])
        for timeout_ms in (1, 20, 60, 150, 300):
            await service.call(PERSON, "settle", api.SettleRequest(timeout_ms=timeout_ms))
        await service.call(PERSON, "settle", api.SettleRequest())

        answer = await service.call(PERSON, "recall", api.RecallRequest(query="harbour"))

    assert answer.notes == ()


@pytest.mark.parametrize("damage", ["absent", "cut short", "other bytes"])
async def test_a_broken_model_is_said_and_recall_stays_lexical(damage: str, opened: Opener, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    if damage != "absent":
        shutil.copytree(REAL / MODEL, folder / MODEL)
        model = folder / MODEL / "model.onnx"
        whole = model.read_bytes()
        model.write_bytes(whole[:1_000_000] if damage == "cut short" else whole[:-1] + bytes([whole[-1] ^ 1]))
    async with opened(models_dir=folder, model=MODEL) as service:
        await service.call(PERSON, "add", MemoryDraft(content="A zebra has stripes"))
        settled = await service.call(PERSON, "settle", api.SettleRequest())

        answer = await service.call(PERSON, "recall", api.RecallRequest(query="stripes"))
        status = await service.call(PERSON, "status", NOTHING)

        with pytest.raises(ScrubjayError):
            await service.call(PERSON, "use_model", api.ModelRequest(name=MODEL))
        assert (await service.call(PERSON, "recall", api.RecallRequest(query="stripes"))).hits == answer.hits

    assert [hit.text for hit in answer.hits] == ["A zebra has stripes"]
    assert answer.mode == "lexical"
    assert answer.notes != ()
    assert settled.to_learn == 0
    assert any("by words alone" in warning for warning in status.warnings)


async def test_a_model_nobody_knows_is_refused(service: Application) -> None:
    with pytest.raises((NotFoundError, InvalidError)):
        await service.call(PERSON, "use_model", api.ModelRequest(name="no-such-model"))

    assert (await service.call(PERSON, "models", NOTHING)).space is None
