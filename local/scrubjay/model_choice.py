"""Which model is used when several places name one. The only place where that is decided."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Origin(StrEnum):
    """Where the value of a setting came from."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The name of the model that is used, who chose it, and, where another place names another one, a remark.

    `fixed` says that it was named for this one process, which `models use` does not override.
    """

    name: str
    because: str
    remark: str = ""
    fixed: bool = False


def chosen(setting: str, named: str, origin: Origin, kept: str | None) -> Choice:
    """Return which model is used as `setting` ("model" or "reranker").

    A flag or an environment variable wins: it is meant for this one process. Then comes what `scrubjay models use`
    chose for this store (`kept`): with another model everything is embedded again, so it takes somebody who asked for
    it. Then the settings file, then the default.

    >>> chosen("model", "bge", Origin.FILE, "e5").name, chosen("model", "bge", Origin.ENVIRONMENT, "e5").name
    ('e5', 'bge')
    """
    variable, use = (
        f"SCRUBJAY_{setting.upper()}",
        "scrubjay models use --reranker" if setting == "reranker" else "scrubjay models use",
    )
    differs = kept is not None and kept != named
    if origin in {Origin.FLAG, Origin.ENVIRONMENT}:
        because = variable if origin is Origin.ENVIRONMENT else f"the flag for {setting}"
        remark = (
            f"two places choose the {setting}: {because} says {named}, which is used; the store says {kept}, because"
            f" '{use} {kept}' was run. To use {kept}, leave {because} out"
        )
        return Choice(name=named, because=f"{because} says so", remark=remark if differs else "", fixed=True)
    if kept is None:
        because = "the settings file says so" if origin is Origin.FILE else "it is the default"
        return Choice(name=named, because=because)
    remark = (
        f"two places choose the {setting}: the settings file says {named}; the store uses {kept}, because"
        f" '{use} {kept}' was run. To use {named}, run: {use} {named}"
    )
    return Choice(
        name=kept, because=f"'{use} {kept}' was run", remark=remark if differs and origin is Origin.FILE else ""
    )
