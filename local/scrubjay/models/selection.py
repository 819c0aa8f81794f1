"""Which embedding and which reranking model a store uses, and what the settings say of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scrubjay.model_choice import Choice, Origin, chosen
from scrubjay.models import http
from scrubjay.settings import NO_MODEL
from scrubjay.store import Store
from scrubjay_shared.errors import ConflictError


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """The models that the settings name, and what they need. `origins` says where the settings came from."""

    models_dir: Path
    model: str
    reranker: str = NO_MODEL
    origins: Mapping[str, Origin] = field(default_factory=dict)
    endpoint: http.Endpoint | None = None
    threads: int | None = None


class Selection:
    """The model that is used as one setting ("model" or "reranker") of an open store."""

    def __init__(self, setting: str, named: str, store: Store, settings: ModelSettings) -> None:
        """`named` is the model that the settings name."""
        self._setting = setting
        self._named = named
        self._store = store
        self._origin = settings.origins.get(setting, Origin.DEFAULT)

    async def choice(self) -> Choice:
        """Return which model is used, and why."""
        return chosen(self._setting, self._named, self._origin, await self._store.read(lambda q: q.meta(self._setting)))

    async def refuse_fixed(self, name: str) -> None:
        """Raise ConflictError where this process was told to use another model."""
        choice = await self.choice()
        if choice.fixed and choice.name != name:
            variable = f"SCRUBJAY_{self._setting.upper()}"
            raise ConflictError(
                f"this process uses {choice.name} because {choice.because}, which wins over 'models use'",
                hint=f"unset {variable} where scrubjay is started, start it again, and choose {name} then",
            )

    async def note(self, name: str) -> None:
        """Note a model as the choice of the store, unless it is used without that."""
        if (await self.choice()).name != name:
            await self._store.write(lambda tx: tx.set_meta(self._setting, name))
