"""From the name of a model to one that answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from scrubjay.models.catalog import EMBEDDERS, MODELS, RERANKERS, EmbeddingModel, Model, RerankingModel, find
from scrubjay.models.http import Calls, Endpoint, HttpEmbedder
from scrubjay.models.installed import PULL_HINT, ModelState, state_of
from scrubjay.models.onnx import OnnxEmbedder, OnnxReranker
from scrubjay.models.ports import Embedder, Reranker
from scrubjay_shared.errors import CorruptError, InvalidError, UnavailableError

DEFAULT_THREADS = 2  # texts at once: leaves a four-core laptop half of itself while it re-embeds
RERANK_THREADS = 4  # pairs at once: somebody waits for them, for a tenth of a second


def is_space_of(space: str, name: str, endpoint: Endpoint | None = None) -> bool:
    """Return whether a space is that of the model of that name, which need not be loaded for it."""
    if name in EMBEDDERS:
        return space == EMBEDDERS[name].space
    return endpoint is not None and space.startswith(f"{name}@{urlsplit(endpoint.url).netloc}/")


def load(
    folder: Path,
    name: str,
    *,
    threads: int | None = None,
    endpoint: Endpoint | None = None,
    calls: Calls | None = None,
    manifest: Mapping[str, Model] = MODELS,
) -> Embedder:
    """Return the embedder of that name: a model under `folder`, or `http:<model>` on the server at `endpoint`.

    Takes about half a second and 100 MB for the default; checksums are verified first. Raises UnavailableError when the
    model is absent, or the server is; CorruptError when its files are not the manifest's, or do not run; NotFoundError
    for a name that nothing bears; InvalidError for a model that makes no vectors. `calls` can end a wait for a server.
    """
    if name == "none":
        raise UnavailableError("no embedding model is chosen", hint=f"scrubjay models use {next(iter(EMBEDDERS))}")
    if name.startswith("http:"):
        if endpoint is None:
            raise InvalidError(
                f"{name} needs the address of its server",
                hint="set embed_url in config.toml (SCRUBJAY_EMBED_URL) to it, as http://127.0.0.1:11434",
            )
        return HttpEmbedder(endpoint, name.removeprefix("http:"), calls=calls)
    model = find(name, manifest)
    if not isinstance(model, EmbeddingModel):
        raise InvalidError(f"{name} is a reranking model: it makes no vectors", hint=f"models: {', '.join(EMBEDDERS)}")
    _whole(model, folder)
    return OnnxEmbedder(model, folder / name, threads=threads or DEFAULT_THREADS)


def load_reranker(
    folder: Path, name: str, *, threads: int | None = None, manifest: Mapping[str, Model] = MODELS
) -> Reranker:
    """Return the reranker of that name under `folder`. Takes and raises what `load` does."""
    if name == "none":
        raise UnavailableError("no reranking model is chosen", hint=f"scrubjay models use {next(iter(RERANKERS))}")
    model = find(name, manifest)
    if not isinstance(model, RerankingModel):
        raise InvalidError(f"{name} is an embedding model: it reranks nothing", hint=f"models: {', '.join(RERANKERS)}")
    _whole(model, folder)
    return OnnxReranker(model, folder / name, threads=threads or RERANK_THREADS)


def _whole(model: Model, folder: Path) -> None:
    """Raise UnavailableError when the model's files are not under `folder`, CorruptError when they are not its own."""
    match state_of(model, folder / model.name, verify=True):
        case ModelState.ABSENT:
            raise UnavailableError(f"the model {model.name} is not installed", hint=f"{PULL_HINT} {model.name}")
        case ModelState.DAMAGED:
            raise CorruptError(
                f"the model {model.name} fails its checksum", hint=f"{PULL_HINT} {model.name} fetches it again"
            )
