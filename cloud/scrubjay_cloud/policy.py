"""Every limit of the cloud service, with its unit and its reason. Pure values; nothing here acts."""

from __future__ import annotations

from dataclasses import dataclass, field

from scrubjay_shared.envelope import MAX_OBJECT_BYTES, MAX_PAGE_BYTES

MIB = 1024 * 1024
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A token bucket: `burst` at once, refilled by `rate` a second.

    A process draws `draw` tokens at a time from the database and spends them from memory, so that the limit holds over
    all instances and a request does not cost a write.
    """

    burst: float
    rate: float
    draw: float = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitPolicy:
    """How often one may ask. Per address and process where nobody is known yet, per account afterwards."""

    login_address: Bucket = Bucket(burst=5, rate=5 / 60)  # per address: a person mistypes, a guesser does not stop at 5
    # Per name, known or not, and network: 240 guesses a day. Not per name alone, or anybody could keep its owner out.
    login_name: Bucket = Bucket(burst=10, rate=10 / 3600)
    login_names: Bucket = Bucket(burst=200, rate=200 / 3600)  # per name from everywhere: guesses by 20 networks at once
    login_proof: Bucket = Bucket(burst=30, rate=30 / 60)  # per address, signed by a recovery code or said to be: 0.1 ms
    prelogin: Bucket = Bucket(burst=30, rate=30 / 60)  # per address: one precedes every login
    register: Bucket = Bucket(burst=5, rate=5 / 3600)  # per address: an account costs 43 ms of CPU and storage
    challenge: Bucket = Bucket(burst=120, rate=2, draw=20)  # per address: an office of devices behind one
    token: Bucket = Bucket(burst=120, rate=2, draw=10)  # per address: each costs a signature check
    push: Bucket = Bucket(burst=240, rate=2, draw=20)  # per account
    pull: Bucket = Bucket(burst=600, rate=10, draw=50)  # per account: 100 devices on long-polls ask 240 times a minute
    control: Bucket = Bucket(burst=300, rate=5, draw=30)  # per account: everything else
    # Per device, bytes of entries of the log: a revoke in a thousand scopes has .5 MB, a thief fills no disk. Not per
    # account, nor is anything else that a revocation needs: the thief would use it up.
    log: Bucket = Bucket(burst=32 * MIB, rate=1024, draw=64 * 1024)
    # Per account, bytes in and out: a bootstrap of a million events is 76 MB and must fit several times.
    traffic: Bucket = Bucket(burst=300 * MIB, rate=300 * MIB / 600, draw=10 * MIB)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPolicy:
    """How many hash a password at once, and how many wait for it. A hash takes 43 ms of a core and 19 MiB."""

    at_once: int = 2  # 38 MiB at most
    waiting: int = 64  # two seconds of it; who is told to come again does so later and costs nothing meanwhile
    share: int = 8  # of one network or account: its buckets let ten through at once
    again_s: float = 5.0  # when to come again: by then twice as many have had their turn as wait


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionPolicy:
    """What a connection is given before it has proved anything."""

    head_s: float = 10.0  # for the head of a request: a packet or two, on the worst line some seconds
    head_bytes: int = 64 * 1024  # of it, and of what is around a body in pieces: browsers' and proxies' have 8 KiB
    chunk_overhead: int = 8  # bytes of that for each byte of a body: pieces of one byte have five
    ahead: int = (
        8  # requests sent before the first one has its answer: clients and proxies send none, and each has 1 KiB
    )
    rest_s: float = 30.0  # for what is left of a body that was answered without it: 900 KiB at 30 KiB/s
    of_network: int = 256  # connections that have proved nothing, of one network: the devices of an office, twice
    strangers: float = 0.5  # share of all connections for those that have proved nothing; the rest is for the others


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPolicy:
    """How searchable scopes are read and searched. The weights are those of the local mode `weighted`."""

    cosine_weight: float = 0.8
    token_weight: float = 0.2
    topic_threshold: float = 0.6  # cosine of query and topic label, from which memories of other topics are left out
    min_topic_filter_size: int = 5
    indexed_chars: int = 20_000  # of a memory, as on devices; the rest is found by meaning only
    topic_chars: int = 200  # of a topic's label: an index of PostgreSQL holds no more than 2,700 bytes
    nearest: int = 200  # candidates by meaning, and as many by words, that are scored: twice the most hits there are
    hits: int = 100  # in one answer
    text_chars: int = 4_000  # of a query: devices embed no more of a text
    dimension: int = 2_000  # widest vector: pgvector indexes none above
    unit: float = 0.01  # by how much a vector's length may differ from 1: devices keep them in 8 bits
    put: int = 1_000  # vectors in one body; the body's own limit ends it before
    page: int = 256  # memories named at once that want a vector: as many of 384 numbers fit one body
    index_rows: int = 50_000  # vectors of one scope from which PostgreSQL keeps an index: 0.1 s without one
    batch_objects: int = 256  # read of a lane at once
    batch_bytes: int = 128 * 1024  # of those, compressed: some thousand ops, merged in one transaction
    batch_unpacked: int = 8 * MIB  # of those, unpacked: 30 KiB of zstd may be 32 MiB, and a hundred of them are .1 MB
    batch_rows: int = 200  # memories merged in one transaction, 10 ms of the writer's time: then others write
    small_bytes: int = 2_048  # objects up to this are folded by a thread: a thousand ops at most, 0.1 s
    catch_up_s: float = 2.0  # a question waits so long for what was pushed before it


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyPolicy:
    """What of the objects stands in the store of bodies, where one is set, and how long one waits for it."""

    # Bytes of an object from which its body goes there. Packs of 512 KiB hold nearly all bytes of an account, so the
    # database keeps some percent of them; below, a request to the store costs more than the bytes do in the database.
    least_bytes: int = 64 * 1024
    at_once: int = 16  # requests of a process: a page of 900 KiB holds 14 such bodies at most
    connect_s: float = 3.0
    answer_s: float = 10.0  # of one request: half a megabyte at 50 kB/s
    retries: int = 3  # after 0.1 s and more: a store that is busy says so and means it
    give_up_s: float = 12.0  # with all retries: before a client's own patience ends, at 30 s
    loose_ms: int = HOUR_MS  # a body that no row has taken by then belongs to a request that broke off
    collect_rows: int = 1_000  # deleted in one request: the most that S3 takes


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudPolicy:
    """The service's numbers."""

    limits: LimitPolicy = field(default_factory=LimitPolicy)
    turns: TurnPolicy = field(default_factory=TurnPolicy)
    connections: ConnectionPolicy = field(default_factory=ConnectionPolicy)
    search: SearchPolicy = field(default_factory=SearchPolicy)
    bodies: BodyPolicy = field(default_factory=BodyPolicy)

    # What one request may hold.
    max_body_bytes: int = MAX_PAGE_BYTES  # data plane: below the 1 MB that nginx lets through
    max_object_bytes: int = MAX_OBJECT_BYTES
    max_json_bytes: int = MAX_PAGE_BYTES  # a log append may carry a keyring and a wrap for each of 100 devices
    # Of who has no token: a login and a challenge's answer have .7 KiB, and take no share of what is counted.
    max_open_bytes: int = 4 * 1024
    max_register_bytes: int = 64 * 1024  # a first device's log, keyring and wraps: 12 KiB
    open_body_s: float = 10.0  # in which such a body must be here
    body_s: float = 30.0  # in which a member's must be here, and longer by its size as it comes
    body_rate: int = 8 * 1024  # bytes a second that it comes at, at least: a slow phone sends 900 KiB in two minutes
    page_objects: int = 4_096  # rows looked at for one page: the smallest object is 272 bytes, so bytes end it first
    max_wait_s: float = 25.0  # long-poll: below the 30 s after which load balancers give up
    gather_s: float = 0.02  # what an instance stores in it is told the others in one go: fifty NOTIFYs a second at most
    untold: int = 100_000  # accounts with news that could not be told while the database was away: 15 MB
    poll_s: float = 1.0  # how often an instance that cannot listen asks PostgreSQL for what others wrote
    listen_again_most_s: float = 60.0  # between two tries to listen, the first after `poll_s`; doubles
    keepalive_s: float = 15.0  # a comment on an idle event stream: proxies close what is silent for 30 s or more
    recheck_s: float = 300.0  # after which its token is looked up though nothing happened

    # What one account may hold.
    quota_bytes: int = 2 * 1024 * MIB  # 28 million events at the 76 bytes that one takes in packs
    quota_objects: int = 2_000_000
    # Share that limited devices may fill: whoever has the keys of one must not stop the owner's machines.
    quota_limited: float = 0.75
    quota_warning: float = 0.8  # share from which answers carry the warning header
    max_devices: int = 100  # in force at once
    max_scopes: int = 1_000
    max_log_entries: int = 20_000  # after the last checkpoint, of which devices make one in 1,000: 8 s to replay
    checkpoint_gap: int = 100  # entries at least between two: each has a state of some 10 to 130 KB beside it
    checkpoints: int = 16  # whose states are kept, newest first: who asks for older ones replays from the genesis
    max_teams: int = 20  # that one account makes: each has storage of its own
    max_team_members: int = 100  # in force at once: a new key is sealed to each
    max_team_entries: int = 5_000  # replaying them takes 1 s; ten people who change something every day for a year
    max_wraps: int = 20_000  # one a device and version
    max_enrolments: int = 10  # open at once: more is somebody else's noise
    max_username: int = 64  # characters
    former_names: int = 3  # kept for one account at once: names are everybody's, and nobody moves more often
    max_tokens: int = 16  # in force per device: a device uses one
    max_tokens_limited: int = 512  # the same of a limited device: one an instance, of those that run within an hour

    # What is kept how long.
    token_ms: int = HOUR_MS
    pending_ms: int = 15 * MINUTE_MS  # enough to walk to the other machine
    challenge_ms: int = MINUTE_MS
    refusal_retry_ms: int = 2_000  # when such a device asks again: the entry follows within a second, mostly
    refusal_ms: int = 15 * MINUTE_MS  # of a device, until the entry follows that revokes it: a round, and three tries
    invite_ms: int = 7 * DAY_MS
    known_network_ms: int = 90 * DAY_MS  # since a device or the right password came from it: a holiday and more
    known_networks: int = 16  # of one account, newest first: homes, offices and phones of a person
    known_again_ms: int = DAY_MS  # after which that is written again
    former_name_ms: int = 90 * DAY_MS  # others take a name no sooner: by then teams and habits know the new one
    superseded_ms: int = 7 * DAY_MS  # part of the published bound of 37 days
    keyring_ms: int = 180 * DAY_MS  # old keyrings: a recovery code that voids a thief's entries needs the one before
    snapshot_ms: int = DAY_MS  # chunks that no manifest names: an upload that broke off goes on within a day
    audit_ms: int = 90 * DAY_MS
    audit_rows: int = 10_000  # per account, whatever their age
    audit_recent_ms: int = DAY_MS  # a sweep counts the rows of accounts that got some since: it runs every hour
    bucket_ms: int = DAY_MS  # an untouched bucket is full again after an hour
    sweep_rows: int = 5_000  # deleted in one transaction: others wait no longer for it than for a large push

    # What a password costs: Argon2id over a key that the client has stretched already.
    hash_memory_kib: int = 19 * 1024  # OWASP's least for t=2; 43 ms here
    hash_iterations: int = 2
    hash_lanes: int = 1
    kdf_min_memory_kib: int = 19 * 1024  # what a client must at least have spent
    kdf_min_iterations: int = 2

    # What the process holds.
    waits: int = 20_000  # long-polls and event streams at once: 2 KB each
    waits_per_device: int = 4  # a device waits once; a second begins before the server has seen the first one's end
    bodies_bytes: int = 128 * MIB  # of requests under way: 140 pushes of the largest size, some seconds of work
    bodies_share: int = 16 * MIB  # of one account: eight hold each other up, and nobody all
    sign_up_bytes: int = 16 * MIB  # of sign-ups under way: nobody who is in waits for them
    sign_up_share: int = MIB  # of one network
    states: int = 4_096  # account states in memory, least recently used go: about 4 KB each
    readers: int = 3  # read connections (SQLite): as many as cores would use
    pool: int = 8  # connections (PostgreSQL) per process, and threads to use them
    group: int = 64  # writes that share a commit


DEFAULT = CloudPolicy()


# --- operation --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LitestreamPolicy:
    """How one litestream is run and watched; durations as its configuration wants them."""

    sync_interval_s: int = 1  # what a lost machine may cost: 0.2 to 0.9 s were lost in four rounds of kill -9
    snapshot_hours: int = 24
    retention_hours: int = 168  # a week: superseded ciphertext must be gone from replicas after 30 days
    busy_s: int = 5
    checkpoint_s: int = 60  # its own: ours are off while it runs
    answer_s: float = 10.0  # an upload of one interval to a far bucket takes a second or two
    first_watch_s: float = 0.25  # until it has answered once
    watch_s: float = 5.0  # each question makes it upload what is there: once in five intervals costs nothing
    lag_alarm_s: float = 60.0  # beyond retries and a slow bucket
    backoff_s: float = 1.0  # before it is started again; doubles
    backoff_most_s: float = 60.0
    steady_s: float = 60.0  # one that ran this long was no failed start
    stop_s: float = 30.0  # for the last upload; orchestrators wait 40 to 90 s for us


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationsPolicy:
    """How the service is kept."""

    litestream: LitestreamPolicy = field(default_factory=LitestreamPolicy)

    # When jobs run. Each is leased, so that of several instances one does it.
    sweep_s: float = 3600.0  # what is over: 5,000 rows a transaction, until there are no more
    bodies_s: float = 3600.0  # bodies that no row names: those of deleted accounts and scopes go at once besides
    search_s: float = 3600.0  # searchable scopes that a crash left behind their lanes, and indexes of large ones
    shrink_s: float = 3600.0
    shrink_pages: int = 2_000  # 8 MiB given back at once: some 20 ms without other writes
    daily_s: float = DAY_MS / 1000  # backup and drill
    look_s: float = 300.0  # how often a daily job asks whether its day is over: a service that restarts misses none
    lease_s: float = 3600.0  # a job that has not ended by then is taken for dead
    measure_s: float = 15.0  # sizes for the metrics: one scrape
    count_s: float = 300.0  # all accounts are counted: a second of one core for a million, of one instance for all

    # Independent backups.
    keep_daily: int = 7
    keep_weekly: int = 4  # 28 days: with the 7 of superseded objects within the published bound of 37
    backup_alarm_s: float = 2 * DAY_MS / 1000
    restore_s: float = 3600.0  # litestream reads 50 GB of a bucket in that

    # The check of a machine.
    free_bytes: int = 1024 * MIB  # below: a warning; a backup needs the size of the database besides
    low_bytes: int = 200 * MIB  # below: the service would soon refuse pushes
    full_bytes: int = 64 * MIB  # below: not ready. As much as one commit may bring: 64 pushes of 900 KiB

    # The process.
    keep_alive_s: int = 75  # an idle connection: longer than proxies keep theirs (60 s), so that they close first
    drain_s: int = 10  # for requests that are under way; long-polls are answered at once
    large_block_bytes: int = 1024 * 1024  # of memory: from here on returned when freed; a hash takes 19 MiB, a body 0.9
    worker_start_s: float = 10.0  # a worker that ends within it could not start; a start takes about one
    connections: int = 32_768  # open at once: those that wait, and as many again
    own_files: int = 256  # that the process has open besides: databases, logs, connections to others
    backlog: int = 2048  # connections that wait for accept: 1,000 long-polls that reconnect after a restart


OPERATIONS = OperationsPolicy()
