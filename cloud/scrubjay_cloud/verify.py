"""Whether a database holds what it says: every account log replayed, every lane walked from its root to its head.

A database that was restored, copied or drilled is believed only after this. It needs no key: links and signatures are
made over ciphertext, and the account log says whose they must be. `verify` only looks; `repair` also makes the heads of
lanes what the objects say, and cuts a lane before the first object that does not hold, so that a device which has the
rest can send it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from hashlib import sha256

from scrubjay_cloud.bodies import BodyStore
from scrubjay_cloud.bodies.loose import release
from scrubjay_cloud.bodies.transfer import set_store
from scrubjay_cloud.database.port import Database, Row, Transaction
from scrubjay_shared import account as accountlog
from scrubjay_shared import envelope
from scrubjay_shared.account import AccountState, are_related
from scrubjay_shared.envelope import Envelope, ObjectKind
from scrubjay_shared.errors import ScrubjayError

_PAGE = 64
"""Objects read at once: 32 MiB at most, and one signature for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that does not hold. `account` is the first 8 hex digits of its id; `objects` were cut, or would be."""

    account: str
    words: str
    objects: int = 0
    fatal: bool = False
    """Whether no cut mends it: an account log that does not verify vouches for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was checked, and what did not hold."""

    accounts: int = 0
    entries: int = 0
    lanes: int = 0
    objects: int = 0
    blobs: int = 0
    bytes: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether everything is as it says."""
        return not self.findings

    def plus(self, other: Verified) -> Verified:
        """Return what both checked and found."""
        return Verified(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)})


@dataclass(slots=True, kw_only=True)
class _Tally:
    accounts: int = 0
    entries: int = 0
    lanes: int = 0
    objects: int = 0
    blobs: int = 0
    bytes: int = 0
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """Where a lane's objects end, and how many of them were seen; `broken` says why it goes no further."""

    n: int
    tip: bytes
    objects: int
    bytes: int
    broken: str = ""


def verify(tx: Transaction, bodies: BodyStore | None = None) -> Verified:
    """Check everything, and change nothing. Raises UnavailableError when `bodies` does not answer."""
    return _checked(tx, _accounts(tx), bodies, repair=False)


def repair(tx: Transaction, bodies: BodyStore | None = None) -> Verified:
    """Check everything; cut lanes to what holds and set every head anew. The findings say what was cut.

    Raises UnavailableError when `bodies` does not answer: what is only out of reach is not taken for lost.
    """
    return _checked(tx, _accounts(tx), bodies, repair=True)


async def repair_each(database: Database, bodies: BodyStore | None = None) -> Verified:
    """Do what `repair` does, each account in a transaction of its own; stop before one whose log does not verify.

    A database of many accounts is not held for as long as all of them take, and what was done before a fault stays.
    """
    total = Verified()
    for account in await database.read(_accounts):
        found = await database.write(partial(_repaired, account=account, bodies=bodies))
        total = total.plus(found)
        if any(finding.fatal for finding in found.findings):
            break
    return total


def _repaired(tx: Transaction, *, account: bytes, bodies: BodyStore | None) -> Verified:
    tx.execute("update account set gseq = gseq where id = ?", (account,))  # the lock that pushes take first
    return _checked(tx, [account], bodies, repair=True)


def _accounts(tx: Transaction) -> list[bytes]:
    return [row[0] for row in tx.rows("select id from account order by id")]


def _checked(tx: Transaction, accounts: Sequence[bytes], bodies: BodyStore | None, *, repair: bool) -> Verified:
    tally = _Tally()
    for account in accounts:
        row = tx.row("select log_seq, log_head, gseq from account where id = ?", (account,))
        if row is None:
            continue  # deleted since
        seq, head, gseq = row
        tally.accounts += 1
        try:
            keys, stored = _Keys(), _stored(tx, account)
            state = _replayed(tx, account, keys, stored, (seq, head))
        except ScrubjayError as error:
            tally.findings.append(_finding(account, f"its log does not verify: {error.message}", fatal=True))
            continue
        tally.entries += state.seq + 1
        # Without a stored state requests replay the log from there: slower, and right.
        for place in sorted(stored):
            tally.findings.append(_finding(account, f"its stored state {place} is not what its log adds up to"))
            if repair:
                tx.execute("delete from account_state where account = ? and seq = ?", (account, place))
        _check_lanes(tx, account, keys, bodies, tally, repair=repair)
        _check_blobs(tx, account, state, bodies, tally)
        highest = tx.row("select max(gseq) from object where account = ?", (account,))
        if highest and highest[0] is not None and highest[0] > gseq:
            tally.findings.append(_finding(account, f"object {highest[0]} lies beyond its last place {gseq}"))
            if repair:
                tx.execute("update account set gseq = ? where id = ?", (highest[0], account))
        if repair:
            _recount(tx, account)
    return Verified(
        accounts=tally.accounts,
        entries=tally.entries,
        lanes=tally.lanes,
        objects=tally.objects,
        blobs=tally.blobs,
        bytes=tally.bytes,
        findings=tuple(tally.findings),
    )


def _finding(account: bytes, words: str, objects: int = 0, *, fatal: bool = False) -> Finding:
    return Finding(account=account.hex()[:8], words=words, objects=objects, fatal=fatal)


def _stored(tx: Transaction, account: bytes) -> dict[int, bytes]:
    """Return the stored states of an account, by the entries after which it was so."""
    rows = tx.rows("select seq, state from account_state where account = ?", (account,))
    return {row[0]: row[1] for row in rows}


def _replayed(
    tx: Transaction, account: bytes, keys: _Keys, stored: dict[int, bytes], end: tuple[int, bytes]
) -> AccountState:
    """Return what a log adds up to. `keys` gets who may have signed; `stored` loses the states that are right.

    Raises as `account.extended`, and when the account's row speaks of another end.
    """
    rows = tx.rows("select seq, hash, entry from account_log where account = ? order by seq", (account,))
    last = None
    for number, (state, row) in enumerate(zip(accountlog.each_state([row[2] for row in rows]), rows, strict=True)):
        if row[0] != number or row[1] != state.head:
            raise ScrubjayError(f"entry {number} is not the one its row names")
        if number in stored and stored[number] == accountlog.state_bytes(state):
            del stored[number]
        keys.add(state)
        last = state
    if last is None:
        raise ScrubjayError("it has no entries")
    if last.account != account or (last.seq, last.head) != end:
        raise ScrubjayError(f"it ends at entry {last.seq}, and the account says {end[0]}")
    return last


# --- lanes ------------------------------------------------------------------------------------------------------------


def _check_lanes(
    tx: Transaction, account: bytes, keys: _Keys, bodies: BodyStore | None, tally: _Tally, *, repair: bool
) -> None:
    heads = {
        (scope, device): (n, tip)
        for scope, device, n, tip in tx.rows(
            "select scope, device, n, tip from lane where account = ? order by scope, device", (account,)
        )
    }
    stored = tx.rows(
        "select distinct scope, device from object where account = ? and superseded_at is null order by 1, 2",
        (account,),
    )
    for scope, device in sorted(heads.keys() | {(row[0], row[1]) for row in stored}):
        tally.lanes += 1
        end = _walked(tx, (account, scope, device), bodies, keys)
        tally.objects += end.objects
        tally.bytes += end.bytes
        name = f"lane {scope.hex()[:8]}/{device.hex()[:8]}"
        if end.broken:
            lost = tx.row(
                "select count(*) from object"
                " where account = ? and scope = ? and device = ? and superseded_at is null and n_from > ?",
                (account, scope, device, end.n),
            ) or (0,)
            tally.findings.append(_finding(account, f"{name} holds to place {end.n}: {end.broken}", int(lost[0])))
            if repair:
                _cut(tx, account, (scope, device), end)
        elif heads.get((scope, device)) != (end.n, end.tip):
            said = heads.get((scope, device), (0, b""))[0]
            tally.findings.append(_finding(account, f"{name} ends at place {end.n}, and its row says {said}"))
        if repair:
            _set_head(tx, account, (scope, device), end)


class _Keys:
    """Who may have signed in an account, at any time: what a device wrote before it was voided stays signed by it."""

    def __init__(self) -> None:
        self._signs: dict[bytes, set[bytes]] = {}
        self._adopters: dict[tuple[bytes, bytes], set[bytes]] = {}
        self._limited: set[bytes] = set()
        self._before: AccountState | None = None

    def add(self, state: AccountState) -> None:
        """Take in who may sign after one more entry."""
        before, self._before = self._before, state
        if before is None or state.devices is not before.devices:
            for device in state.devices.values():
                self._signs.setdefault(device.id, set()).add(device.sign_pub)
                if not device.full:
                    self._limited.add(device.id)
        if before is None or state.adopters is not before.adopters:
            for lane, adopters in state.adopters.items():
                self._adopters.setdefault(lane, set()).update(adopters)

    def of(self, one: Envelope) -> Sequence[bytes]:
        scope, owners = one.header.scope, {one.header.device}
        if one.header.device not in self._signs:
            owners = {device for device in self._limited if are_related(device, one.header.device)}
        if one.header.kind == ObjectKind.PACK:
            owners |= set[bytes]().union(*(self._adopters.get((scope, owner), set()) for owner in owners))
        return tuple(key for owner in owners for key in self._signs.get(owner, ()))


def _walked(tx: Transaction, lane: tuple[bytes, bytes, bytes], bodies: BodyStore | None, keys: _Keys) -> _End:
    """Follow a lane's live objects from its root as far as they hold."""
    end = _End(n=0, tip=envelope.lane_root(*lane), objects=0, bytes=0)
    while True:
        rows = _with_bodies(
            tx.rows(
                "select kind, n_from, n_to, hash, tip, size, body, body_key from object"
                " where account = ? and scope = ? and device = ? and superseded_at is null and n_from > ?"
                f" order by n_from limit {_PAGE}",
                (*lane, end.n),
            ),
            bodies,
        )
        if not rows:
            return end
        try:
            end = _after(end, rows, lane, keys)
        except ScrubjayError:
            # Somewhere in the page: one by one, each with its own signature, as far as it goes.
            for row in rows:
                try:
                    end = _after(end, [row], lane, keys)
                except ScrubjayError as error:
                    return replace(end, broken=error.message)


def _with_bodies(rows: Sequence[Row], bodies: BodyStore | None) -> list[Row]:
    """Return rows that end with `body` and `body_key` with their objects in the place of both, None for lost ones."""
    keys = [row[-1] for row in rows if row[-1] is not None]
    fetched = iter(set_store(bodies).fetch(keys) if keys else ())
    return [(*row[:-2], row[-2] if row[-1] is None else next(fetched)) for row in rows]


def _after(end: _End, rows: Sequence[Row], lane: tuple[bytes, bytes, bytes], keys: _Keys) -> _End:
    """Return the end of a lane after some more of its objects. Raises when they are not what they must be."""
    run = [_read(row, lane) for row in rows]
    envelope.check_run(run, n=end.n, prev=end.tip, keys=keys.of)
    last = run[-1]
    return _End(
        n=last.header.n_to,
        tip=last.end,
        objects=end.objects + len(run),
        bytes=end.bytes + sum(row[5] for row in rows),
    )


def _read(row: Row, lane: tuple[bytes, bytes, bytes]) -> Envelope:
    kind, n_from, n_to, link, tip, size, body = row
    if body is None:
        raise ScrubjayError(f"the body of the object at place {n_from} is missing in the store")
    parsed = envelope.parse(body)
    header = parsed.header
    if (header.account, header.scope, header.device) != lane:
        raise ScrubjayError(f"the object at place {n_from} belongs to another lane")
    said = (kind, n_from, n_to, link, tip, size)
    if said != (header.kind, header.n_from, header.n_to, parsed.link, parsed.end, len(body)):
        raise ScrubjayError(f"the object at place {n_from} is not the one its row names")
    return parsed


def _cut(tx: Transaction, account: bytes, lane: tuple[bytes, bytes], end: _End) -> None:
    beyond = "account = ? and scope = ? and device = ? and superseded_at is null and n_from > ?"
    release(tx, "object", beyond, (account, *lane, end.n))
    tx.execute(f"delete from object where {beyond}", (account, *lane, end.n))


def _recount(tx: Transaction, account: bytes) -> None:
    """Set what an account is said to hold to what it holds."""
    sums = "select count(*), coalesce(sum(size), 0) from"
    live = tx.row(f"{sums} object where account = ? and superseded_at is null", (account,)) or (0, 0)
    old = tx.row(f"{sums} object where account = ? and superseded_at is not null", (account,)) or (0, 0)
    blobs = tx.row(f"{sums} blob where account = ?", (account,)) or (0, 0)
    tx.execute(
        "update account set objects = ?, bytes = ?, superseded = ? where id = ?",
        (int(live[0] + blobs[0]), int(live[1] + blobs[1]), int(old[1]), account),
    )


def _set_head(tx: Transaction, account: bytes, lane: tuple[bytes, bytes], end: _End) -> None:
    if end.n == 0:
        tx.execute("delete from lane where account = ? and scope = ? and device = ?", (account, *lane))
        return
    tx.execute(
        "insert into lane (account, scope, device, n, tip) values (?, ?, ?, ?, ?)"
        " on conflict (account, scope, device) do update set n = excluded.n, tip = excluded.tip",
        (account, *lane, end.n, end.tip),
    )


# --- what hangs on the log --------------------------------------------------------------------------------------------


def _check_blobs(tx: Transaction, account: bytes, state: AccountState, bodies: BodyStore | None, tally: _Tally) -> None:
    hashes: Mapping[bytes, int] = dict(tx.rows("select hash, size from blob where account = ?", (account,)))
    for digest, size in hashes.items():
        found = tx.rows("select body, body_key from blob where account = ? and hash = ?", (account, digest))
        tally.blobs += 1
        tally.bytes += size
        data = [row[0] for row in _with_bodies(found, bodies)]
        if data == [None] or [(sha256(one).digest(), len(one)) for one in data] != [(digest, size)]:
            tally.findings.append(_finding(account, f"the blob {digest.hex()[:8]} is damaged"))
    if state.keyring is not None and state.keyring[1] not in hashes:
        tally.findings.append(_finding(account, "the keyring in force is missing; a device puts it back"))
