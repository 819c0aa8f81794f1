"""The op log's meaning: what one change says, how changes merge, and what they add up to. Pure, and free of policy.

Theory of operation. Everything that is not derived is the fold of a set of ops. The fold is commutative, associative
and idempotent, so that any two replicas holding the same ops show the same view, whatever order they came in:

* events and grips are grow-only sets by id; of two that two devices made under one id, the smaller one counts;
* a memory is a set of registers, one a field; a register has versions `{(hlc, device): (value, seen)}`. `seen` are
  those that its writer knew, and supersedes. Of the others it shows the greatest stamp; the rest are open conflicts,
  never lost. A superseded version may lose its value (`emptied`), which changes nothing of what shows;
* the trust of a memory is the least that any write of it said: no later op raises it. One that is trusted less than an
  agent's own words shows in the layer `archive` where its register says `identity` or `active`;
* the trust of an event is at most what its role allows (`records.TRUST_OF`);
* of a memory that somebody outside wrote, what shows keeps to the bounds that receivers noted of their writes
  (`outside`): it is never always loaded, and stands in the projects that are shared with its writer, or in none;
* names are a set of claims; the smallest live stamp holds a name, the others show as `name~2`, `name~3`;
* counters are a running total per device, merged by the greater;
* `forget` is absorbing: it beats every edit, earlier or later. Blanked passages of an event are a union of spans;
* an op may name its cause, the run or request that wrote it. No part of the fold looks at it.

The encoding is `[type, version, op_id, hlc, body]` in MessagePack (docs/protocol.md, 5). Types and fields are only ever
added; an op that `problem` refuses (of an unknown type or version, or not well formed) is kept and folds to nothing.

By module, from the outside in: `views` (what a state shows), `names` (who holds which), `emptying` (what need not be
kept), `state` (the fold), `encoding` (bytes), `validity` (what can be applied), `readdress` (an op changes hands),
`bodies` (made and read), `outside` (what others wrote), `registers` (versions and conflicts), `causes`, `blanks`,
`stamps`, `schema` (the numbers). Readers import all of it from here.
"""

from scrubjay_shared.ops.blanks import BLANK_CHARACTER, blanked
from scrubjay_shared.ops.bodies import (
    ForgottenWords,
    blank_body,
    claim_body,
    count_body,
    counted,
    emptied,
    entity_of,
    event_body,
    event_of,
    fields_of,
    forget_body,
    grip_body,
    grip_of,
    is_hollow,
    is_replacing,
    lifts,
    memory_body,
    name_of,
    named_in,
    new_key_body,
    new_key_of,
    of_id_alone,
    owner_of,
    spans_of,
    stamps_of,
    total_of,
    trust_of,
    trust_word,
    unclaim_body,
    with_blanks,
    words_of,
)
from scrubjay_shared.ops.causes import cause_in, cause_of, caused, is_cause
from scrubjay_shared.ops.emptying import to_empty
from scrubjay_shared.ops.encoding import (
    agree,
    decode,
    encode,
    encode_event,
    encode_event_body,
    encode_wire,
    is_repeatable,
    op_of,
    read,
    says_no_more,
)
from scrubjay_shared.ops.names import FIRST_CLAIM, holders, live_claims
from scrubjay_shared.ops.outside import Bounds, bounded, bounds_of
from scrubjay_shared.ops.readdress import adopted, readdressed, taken_over
from scrubjay_shared.ops.registers import Version, heads, out_of_reach, supersedes, to_settle, unseen, winner
from scrubjay_shared.ops.schema import (
    ABSENT,
    CAUSE,
    EMPTIED,
    ENTITY,
    LASTING,
    VERSION,
    WORDS,
    Counter,
    Field,
    OpType,
    Wire,
)
from scrubjay_shared.ops.stamps import MAX_HLC, Stamp
from scrubjay_shared.ops.state import State, apply, first_event, first_grip, fold, merge
from scrubjay_shared.ops.validity import MAX_JSON_DEPTH, all_events_fit, problem, wire_problem
from scrubjay_shared.ops.views import View, view

__all__ = [
    "ABSENT",
    "BLANK_CHARACTER",
    "CAUSE",
    "EMPTIED",
    "ENTITY",
    "FIRST_CLAIM",
    "LASTING",
    "MAX_HLC",
    "MAX_JSON_DEPTH",
    "VERSION",
    "WORDS",
    "Bounds",
    "Counter",
    "Field",
    "ForgottenWords",
    "OpType",
    "Stamp",
    "State",
    "Version",
    "View",
    "Wire",
    "adopted",
    "agree",
    "all_events_fit",
    "apply",
    "blank_body",
    "blanked",
    "bounded",
    "bounds_of",
    "cause_in",
    "cause_of",
    "caused",
    "claim_body",
    "count_body",
    "counted",
    "decode",
    "emptied",
    "encode",
    "encode_event",
    "encode_event_body",
    "encode_wire",
    "entity_of",
    "event_body",
    "event_of",
    "fields_of",
    "first_event",
    "first_grip",
    "fold",
    "forget_body",
    "grip_body",
    "grip_of",
    "heads",
    "holders",
    "is_cause",
    "is_hollow",
    "is_repeatable",
    "is_replacing",
    "lifts",
    "live_claims",
    "memory_body",
    "merge",
    "name_of",
    "named_in",
    "new_key_body",
    "new_key_of",
    "of_id_alone",
    "op_of",
    "out_of_reach",
    "owner_of",
    "problem",
    "read",
    "readdressed",
    "says_no_more",
    "spans_of",
    "stamps_of",
    "supersedes",
    "taken_over",
    "to_empty",
    "to_settle",
    "total_of",
    "trust_of",
    "trust_word",
    "unclaim_body",
    "unseen",
    "view",
    "winner",
    "wire_problem",
    "with_blanks",
    "words_of",
]
