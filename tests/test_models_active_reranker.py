"""The reranking model of an open store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.policy import MemoryPolicy, WorkPolicy
from scrubjay_shared.errors import (
    CorruptError,
    InvalidError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from scrubjay.service.application import Application

    Opener = Callable[..., AbstractAsyncContextManager[Application]]

pytestmark = pytest.mark.anyio

NAME = "bge-small-en-v1.5"
RERANKER = "ms-marco-MiniLM-L-12-v2"
REAL = Path(os.environ.get("SCRUBJAY_TEST_MODELS") or Path(__file__).resolve().parents[1] / ".models")


TEXTS = ["The kitten naps on the couch", "The server ran out of disk space"]


async def test_a_reranker_is_loaded_when_needed_and_let_go_when_idle(opened: Opener) -> None:
    policy = MemoryPolicy(work=WorkPolicy(unload_seconds=0))
    async with opened(models_dir=REAL, reranker=RERANKER, policy=policy) as service:
        before = (await service.call(PERSON, "status", api.Nothing())).reranker_state
        scores, note = await service._models.reranker.rerank("where does the young cat sleep?", TEXTS)
        loaded = (await service.call(PERSON, "status", api.Nothing())).reranker_state
        await service.maintain.run()
        idle = (await service.call(PERSON, "status", api.Nothing())).reranker_state
        again, _ = await service._models.reranker.rerank("where does the young cat sleep?", TEXTS)

    assert (before, loaded, idle, note) == ("idle", "loaded", "idle", "")
    assert scores is not None
    assert again is not None
    assert scores[0] > scores[1]
    np.testing.assert_array_equal(scores, again)


async def test_a_reranker_that_is_not_installed_is_no_fault(opened: Opener) -> None:
    async with opened(reranker=RERANKER) as service:
        answer = await service._models.reranker.rerank("anything", TEXTS)
        status = await service.call(PERSON, "status", api.Nothing())
        listed = {model.name: model for model in (await service.call(PERSON, "models", api.Nothing())).models}

    assert answer == (None, "")
    assert (status.reranker, status.reranker_state) == (RERANKER, "absent")
    assert not any("rerank" in warning for warning in status.warnings)
    assert (listed[RERANKER].kind, listed[RERANKER].in_use, listed[RERANKER].error) == ("reranker", True, None)


async def test_a_damaged_reranker_is_a_note_and_a_warning(opened: Opener, tmp_path: Path) -> None:
    (tmp_path / RERANKER).mkdir()
    async with opened(models_dir=tmp_path, reranker=RERANKER) as service:
        scores, note = await service._models.reranker.rerank("anything", TEXTS)
        status = await service.call(PERSON, "status", api.Nothing())
        with pytest.raises(CorruptError):
            await service.call(PERSON, "use_model", api.ModelRequest(name=RERANKER))

    assert scores is None
    assert "checksum" in note
    assert status.reranker_state == "corrupt"
    assert any("rerank" in warning and "models pull" in warning for warning in status.warnings)


async def test_the_reranker_that_was_chosen_is_kept_in_the_store(opened: Opener) -> None:
    async with opened(models_dir=REAL) as service:
        at_first = await service._models.reranker.rerank("anything", TEXTS)
        await service.call(PERSON, "use_model", api.ModelRequest(name=RERANKER))
        chosen, _ = await service._models.reranker.rerank("anything", TEXTS)
        model = (await service.call(PERSON, "status", api.Nothing())).model
    async with opened(models_dir=REAL) as service:
        kept = (await service.call(PERSON, "status", api.Nothing())).reranker
        await service.call(PERSON, "use_model", api.ModelRequest(name="none", reranker=True))
        status = await service.call(PERSON, "status", api.Nothing())
        none = await service._models.reranker.rerank("anything", TEXTS)

    assert at_first == none == (None, "")
    assert chosen is not None
    assert (kept, model) == (RERANKER, "none")  # the embedding model is another matter
    assert (status.reranker, status.reranker_state) == ("none", "none")


async def test_a_model_is_not_taken_up_for_what_it_does_not_do(opened: Opener) -> None:
    async with opened(models_dir=REAL) as service:
        with pytest.raises(InvalidError):
            await service.call(PERSON, "use_model", api.ModelRequest(name=NAME, reranker=True))

        assert (await service.call(PERSON, "status", api.Nothing())).reranker == "none"
