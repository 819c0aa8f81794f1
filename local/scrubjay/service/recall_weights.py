"""The weights of recall that a benchmark fitted, as the settings name their file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from scrubjay.policy import RecallWeights
from scrubjay_shared.errors import InvalidError


def read(path: Path) -> Mapping[str, float]:
    """Return the weights in a file that `scrubjay bench fit` wrote. Raises InvalidError when it did not."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RecallWeights).weights
    except (OSError, msgspec.DecodeError) as error:
        raise InvalidError(
            f"recall_weights: {path} is not a file of weights ({type(error).__name__})",
            hint="name a file that scrubjay bench fit wrote, or leave the setting out",
        ) from error
