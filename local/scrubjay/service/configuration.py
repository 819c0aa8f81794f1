"""What settings and the environment mean for an application."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from scrubjay.models.http import Endpoint
from scrubjay.policy import MemoryPolicy, RecallWeights, ReviewMode, weighted
from scrubjay.settings import Settings
from scrubjay_shared.errors import InvalidError


def endpoint_of(settings: Settings, environ: Mapping[str, str]) -> Endpoint | None:
    """Return the embeddings server that settings name, with its key; None where they name none."""
    if not settings.embed_url:
        return None
    key = environ.get(settings.embed_key_env, "") if settings.embed_key_env else ""
    return Endpoint(url=settings.embed_url, api=settings.embed_api, key=key)


def policy_of(settings: Settings, policy: MemoryPolicy) -> MemoryPolicy:
    """Return a policy with what settings say of it: the weights of recall, whose file is read, and what is reviewed.

    Raises InvalidError for a file that holds no weights.
    """
    policy = replace(policy, review=replace(policy.review, mode=ReviewMode(settings.review)))
    if settings.recall_weights is None:
        return policy
    return replace(policy, recall=weighted(policy.recall, _weights(settings.recall_weights)))


def _weights(path: Path) -> Mapping[str, float]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=RecallWeights).weights
    except (OSError, msgspec.DecodeError) as error:
        raise InvalidError(
            f"recall_weights: {path} is not a file of weights ({type(error).__name__})",
            hint="name a file that scrubjay bench fit wrote, or leave the setting out",
        ) from error
