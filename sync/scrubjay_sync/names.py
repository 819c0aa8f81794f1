"""What the account's devices are called, for commands that show which one wrote something."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from scrubjay_sync import profile

if TYPE_CHECKING:
    from scrubjay.settings import Settings


def of_devices(chosen: Settings) -> Mapping[str, str]:
    """Return the names by device id; none when this machine is not logged in. Raises what opening the store raises."""
    if profile.load(chosen.store_dir) is None:
        return {}
    nothing = import_module("scrubjay_sync.api.identity").Nothing()
    with import_module("scrubjay_sync.transport").connect(chosen) as transport:
        response = transport.call("names", nothing)
    names: Mapping[str, str] = response.names
    return names
