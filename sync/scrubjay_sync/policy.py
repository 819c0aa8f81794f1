"""Every number of the sync client, with its unit and its reason. Pure values; nothing here acts."""

from __future__ import annotations

from dataclasses import dataclass

# --- identity: passwords, pairing -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityPolicy:
    """What logging in and letting in go by."""

    # Argon2id. RFC 9106's second choice (64 MiB, 3 rounds, 4 lanes): 0.3 s of a 2-core machine.
    kdf_memory_kib: int = 64 * 1024
    kdf_iterations: int = 3
    kdf_lanes: int = 4
    # Below these (OWASP's least) a server would be asking for a key that it can guess the password from.
    kdf_floor_memory_kib: int = 19 * 1024
    kdf_floor_rounds: int = 2
    # Above these it would be wasting this machine: 1 GiB and 16 rounds take about half a minute.
    kdf_ceiling_memory_kib: int = 1024 * 1024
    kdf_ceiling_rounds: int = 16
    kdf_ceiling_lanes: int = 16
    password_least: int = 10  # characters; the password opens no data, and the server slows down guessing
    append_tries: int = 8  # races for the log's end that one change may lose: a hundred devices seldom meet twice
    # Of the account log, from one checkpoint to the next: a new device replays as many in .2 s, and the state of 100
    # devices takes 130 KB, of which the server keeps some.
    checkpoint_entries: int = 1_000
    # Below so many further rotations of all keys that the keyring has room for, no scope is made any more: a person
    # with 1,000 scopes keeps room to revoke ten devices, and has read the warning of `sync status` for long.
    keyring_reserve: int = 10
    keyring_warning: int = 50  # from here on `sync status` says how many are left: years for most people
    approval_poll_s: float = 2.0  # between two looks whether a device was let in: a person is reading six words
    approval_wait_s: float = 900.0  # as long as the server remembers who asked, told by a clock that is never wrong
    reveal_poll_s: float = 0.5  # between two looks whether the machine that asks has seen the answer
    reveal_wait_s: float = 30.0  # it looks every two seconds: a slow network, a machine that was asleep
    tries: int = 3  # wrong answers to one question before the command ends: a mistyped word, not a guesser's dictionary
    asked_back: int = 2  # groups of the recovery code that are asked back: enough to know that it was written down


IDENTITY = IdentityPolicy()

ACCOUNT_CHANGED = "account_changed"
"""The code of the alarm about a change of who is in. One for each change: its subject is the entry's hash."""

TEAM_CHANGED = "team_changed"
"""The code of the alarm about a change of a team, likewise."""


# --- engine: talking to the cloud, sealing, packing -------------------------------------------------------------------

MIB = 1024 * 1024
HOUR_MS = 3600 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudPolicy:
    """How long and how much is waited for and taken."""

    connect_s: float = 10.0  # a far host on a bad line answers in three
    timeout_s: float = 60.0  # between two bytes: 900 KiB at 128 kbit/s
    max_answer_bytes: int = 16 * MIB  # 20,000 log entries in base64; anything above is not this service
    log_page_bytes: int = 2 * MIB  # of a page of a log in JSON: the service fills it to 700 KB
    log_bytes: int = 64 * MIB  # of a whole log before it is verified: 100,000 entries of 600 bytes, 30 years of changes
    problem_bytes: int = 64 * 1024  # of an answer that says what is wrong: the service's have some hundred
    said_chars: int = 200  # of the server's words in an error
    slack_bytes: int = 1024  # what an answer may exceed its limit by: objects end where they end
    token_margin_ms: int = 60_000  # renewed before its end: requests under way must not meet it
    token_least_ms: int = 300_000  # trusted at least so long when a clock makes its end look past
    max_retry_after_s: float = 3600.0  # longer pauses are a server's mistake
    # A request that is one too many waits so long at most, so often, before what it is part of ends: what reads a
    # hundred lanes would else begin again with the first one, and use up what the server lets through each time.
    pause_most_s: float = 5.0
    pauses: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPolicy:
    """When rounds are, and what goes into objects."""

    # When. A write that comes alone goes soon; of a burst, the rest goes once it has ended.
    soon_ms: int = 200  # one act of a person or an agent writes several ops within it
    debounce_ms: int = 1_200  # without a write, and a burst has ended: with the round itself, 1.5 s until it is seen
    debounce_most_ms: int = 15_000  # so that steady writing is sent all the same
    quiet_ms: int = 15 * 60_000  # quiet mode: when something was written is blurred to a quarter of an hour
    idle_ms: int = 60_000  # between two rounds with nothing to send, where nobody waits for news
    calm_ms: int = 300_000  # between two where news are waited for and there are none: nothing else can have changed
    backoff_ms: int = (
        1_000  # decorrelated jitter, sleep = min(most, uniform(base, last * 3)); source: Brooker, AWS 2015
    )
    backoff_most_ms: int = 300_000
    wait_s: float = 25.0  # long-poll: the server's own limit
    held_share: float = 0.9  # of it after which an answer counts as held to the end: clocks and wires are not exact
    look_s: float = 0.1  # between looks whether a round under way has come to its waiting, when somebody wants the next
    exit_s: float = 2.0  # a daemon that is told to stop sends what it has for so long, and no longer

    # What goes into one object.
    segment_raw_bytes: int = 1536 * 1024  # before compression to about a third; what does not fit is cut in two
    part_bytes: int = 384 * 1024  # of an op that no one object can hold
    seal_ops: int = 4_096  # read and sealed in one transaction: 10 ms that other writes wait
    held_lanes: int = 1_000  # refused in one round, before it ends: no account has so many, and each is an alarm
    pull_bytes: int = 256 * 1024  # a page is applied in one transaction: 3,000 events, 0.1 s that other writes wait
    reach_places: int = (
        1  # first step back into a lane: what is large is packs of one place each; doubles while pages are small
    )
    prepare_ops: int = 500  # of a page of a first reading, from which on another process (0.5 s to start) reads them
    push_bytes: int = 900 * 1024  # nginx refuses more than 1 MB unless told otherwise
    free_bytes: int = 200 * MIB  # below this much free disk nothing is pulled; local writes go on
    repair_bytes: int = 2048 * MIB  # other devices' objects kept to heal the server with

    # Packs: 1,000,000 events take 572 bytes each one by one, 76 in packs of half a megabyte.
    live_segments: int = 64  # a lane with more small objects than this is packed
    small_bytes: int = 64 * 1024  # an object below is a segment to the packer
    middle_bytes: int = 180 * 1024  # below, one that a second level may take in; parts of an op are larger
    pack_bytes: int = 440 * 1024  # bodies that one pack may stand for: merged they never grow
    # A device that is used says daily what it has done; one that was away for a week may be gone. The doctor looks at
    # so many forgets: each costs a query or two.
    forget_told_ms: int = 7 * 24 * HOUR_MS
    forgets_looked_at: int = 50
    repack_after_ms: int = 12 * HOUR_MS  # after a forget: within the published 24 h, and not so soon that it tells

    # Snapshots: with one, a new machine stores what is there first and reads the lanes, to compare, afterwards.
    snapshot_ops: int = 20_000  # below, reading the lanes takes a second or two
    snapshot_growth: float = 1.25  # of the ops that the last one had: the rest is read from lanes, a quarter at most
    snapshot_sent: int = 16  # chunks made before the server is asked which of them it has: 8 MB of memory at most
    snapshot_ahead: int = 3  # chunks on their way while one is stored: two that are made ready, one that is fetched

    # Watching the server.
    checkpoint_ms: int = 24 * HOUR_MS
    checkpoint_places: int = 1_000
    checkpoint_lanes: int = 5_000  # named in one: 80 bytes each, of an object of half a megabyte
    clock_off_ms: int = 600_000  # a clock further off than merging tolerates is reported
    rounds_again: int = 4  # restarts of one round by what it found: fork, new epoch, repaired server

    # inspect: what must not be found in what the server holds.
    sample_texts: int = 400  # of each kind, newest and oldest
    grams_of_text: int = 32  # evenly over it
    gram_bytes: int = 8  # a 64-bit number; shorter runs occur in random data: 256^8 against 2^30 positions


CLOUD = CloudPolicy()
SYNC = SyncPolicy()
