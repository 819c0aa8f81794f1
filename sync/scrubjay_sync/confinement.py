"""What somebody outside may say, wherever their ops are read: a limited device, or another member of a team. Pure.

A limited device holds the keys of some scopes and runs without a person; another member is another person. Their ops
are taken as an agent's, never as the person's; what they forget is forgotten by its id, and no words are refused
elsewhere because of it; and the names that they give are names of their scope, so that none can take the place of
another. What they write shows in the projects that are bound to that scope here, whatever its registers say, by them
or by anybody later: what is noted of each write (`ops.Bounds`) goes with it. Their words pass the screening that a
local agent's pass. Of a limited device's events the session and the agent are those of its scope, so that no session of
the person's machines goes on with its words. Which things they may speak of is for the store to say, which knows where
they live. All of it depends on the op, the log and the keyring alone, so that every device reads the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scrubjay.lifecycle.trust import risks_in, risks_of, waiting
from scrubjay.policy.trusting import ReviewPolicy
from scrubjay_shared import ops
from scrubjay_shared.errors import CorruptError
from scrubjay_shared.ops import Bounds, Field, OpType
from scrubjay_shared.ops.schema import CLAIMED, EMPTIED, FIELDS
from scrubjay_shared.records import AUTHOR, Kind, ReviewState, Scope, Trust, least, review_state

MOST_TRUST = Trust.AGENT
NOT_ACCEPTED = f"{ReviewState.WAITING.value} limited"
"""What stands in place of its "accepted": nobody outside reviews anything for this person."""
_AGENT, _SESSION, _ROLE, _KEY, _PROJECT, _TRUST, _METADATA = 2, 3, 5, 8, 9, 11, 12
_EXCERPT = 7
_SCREENED = ReviewPolicy()
"""As a local agent's words are screened unless the person chose otherwise: a setting of one device decides nothing that
others must read alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outsider:
    """Who wrote in a scope or a team: its `name` here, the `projects` bound to it here, and the writer's short id.

    `projects` None: the home scope's, which are all that are bound to no other: those are `elsewhere`.
    """

    name: str
    id: str
    projects: tuple[str, ...] | None = ()
    elsewhere: frozenset[str] = frozenset()

    @property
    def place(self) -> str:
        """What stands for a project where a thing names none that is bound here. No folder is a checkout of it."""
        return f"scope:{self.name}"

    @property
    def author(self) -> str:
        """Who that is, in a word: the short id of a device or an account, in the scope or team."""
        return f"{self.id}@{self.name}"


def confined(data: bytes, *, device: str, seq: int, by: Outsider) -> bytes | None:
    """Return an op of somebody outside as it may be taken in: with what is noted of it.

    None for what cannot be judged: an op that this version does not read might say anything to a later one.
    """
    try:
        wire = ops.read(data, device=device, seq=seq)
    except CorruptError:
        return None
    kind, version, op_id, hlc, body = wire
    if ops.problem(ops.op_of(wire, device=device, seq=seq)):
        return None
    changed = dict(body)
    if kind == OpType.EVENT:
        changed = _event(body, by)
    elif kind == OpType.MEMORY:
        changed[FIELDS] = _fields(body[FIELDS], by, spoke=Field.CONTENT in body.get(EMPTIED, ()))
        review = _screened(changed[FIELDS])
        changed = ops.bounded(changed, Bounds(by.place, by.author, by.projects, review))
    elif kind == OpType.FORGET:
        changed = ops.of_id_alone(body)
    elif kind in {OpType.CLAIM, OpType.UNCLAIM}:
        changed[CLAIMED] = _name(body[CLAIMED], by)
    elif kind == OpType.GRIP and risks_in(body[_EXCERPT], _SCREENED):
        changed[_EXCERPT] = ""  # what it quotes is shown beside the memory, and nobody is asked about it
    return data if changed == body else ops.encode_wire((kind, version, op_id, hlc, changed))


def about(data: bytes, *, device: str, seq: int) -> str:
    """Return the id of what an op is about: of a grip that is forgotten, the memory where it says so."""
    op = ops.decode(data, device=device, seq=seq)
    return ops.owner_of(op) or ops.entity_of(op)


def named_by(data: bytes, *, device: str, seq: int) -> frozenset[str]:
    """Return the ids that an op names, all of which must live where its writer may write.

    Of a grip that is forgotten that is the grip's, wherever it says that it is of; of a grip that is made the events
    that it quotes; of a memory what took its place.
    """
    return ops.named_in(ops.decode(data, device=device, seq=seq))


def _event(body: dict[int, Any], by: Outsider) -> dict[int, Any]:
    """Return an event as one of the scope's own: nobody speaks in another's session, project or name."""
    agent, session = _name(body[_AGENT], by), _name(body[_SESSION], by)
    key, before = body[_KEY], f"{body[_AGENT]}/{body[_SESSION]}/"
    speaker = body.get(_METADATA, {}).get("speaker")
    said = speaker if isinstance(speaker, str) and speaker else body[_ROLE]
    changed = {
        **body,
        _AGENT: agent,
        _SESSION: session,
        _KEY: f"{agent}/{session}/{key.removeprefix(before)}",
        _TRUST: least(ops.trust_of(body), MOST_TRUST).value,
        _METADATA: dict(sorted({**body.get(_METADATA, {}), "speaker": _name(said, by), AUTHOR: by.author}.items())),
    }
    project = body.get(_PROJECT)
    if by.projects is None:
        project = by.place if project is None or project in by.elsewhere else project
    elif project not in by.projects:
        project = by.projects[0] if project is None and len(by.projects) == 1 else by.place
    changed[_PROJECT] = project
    return {key: changed[key] for key in sorted(changed, key=lambda key: (key == ops.CAUSE, key))}


def _fields(said: dict[int, Any], by: Outsider, *, spoke: bool) -> dict[int, Any]:
    fields = dict(said)
    if Field.TRUST in fields or Field.CONTENT in fields or spoke:
        # Who says nothing of trust would say the most.
        value = fields.get(Field.TRUST, Trust.USER.value)
        known = Trust(value) if value in Trust._value2member_map_ else Trust.UNTRUSTED
        fields[int(Field.TRUST)] = least(known, MOST_TRUST).value
    if review_state(fields.get(Field.REVIEW)) is ReviewState.ACCEPTED:
        fields[int(Field.REVIEW)] = NOT_ACCEPTED
    if fields.get(Field.RESOURCE_ID) in by.elsewhere:
        fields[int(Field.RESOURCE_ID)] = by.place
    if fields.get(Field.NAME) is not None:
        fields[int(Field.NAME)] = _name(fields[Field.NAME], by)
    return fields


def _screened(fields: dict[int, Any]) -> str | None:
    """Return why a write's words wait for the person, as a review says it; None where they do not."""
    content = fields.get(Field.CONTENT)
    if not isinstance(content, str):
        return None
    trust = Trust(fields[Field.TRUST])
    return waiting(risks_of(content, trust=trust, scope=Scope.PROJECT, kind=Kind.STORED, policy=_SCREENED))


def _name(name: str, by: Outsider) -> str:
    prefix = f"{by.name}/"
    return name if name.startswith(prefix) else prefix + name
