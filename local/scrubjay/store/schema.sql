-- The schema of a new store: what the migrations together make, which say why each thing is there.
-- Made of them by `SCRUBJAY_WRITE_DOCS=1 pytest tests/test_schema.py`; do not edit.

CREATE TABLE event (
  n integer primary key,            -- order of arrival on this machine
  id text not null unique,
  device text not null,
  agent text not null,
  session_id text not null,
  project text,
  ts integer not null,
  utc_offset integer not null,
  type text not null,
  role text not null,
  text text not null,
  metadata text not null,           -- JSON
  dedupe_key text not null,
  trust text not null,
  erased integer not null default 0 -- how often forget reached into this row
, seq integer not null default 0, forgotten integer not null default 0, crc integer) strict;

CREATE TABLE op (
  device text not null,
  seq integer not null,
  op_id blob not null,
  hlc integer not null,
  type integer not null,
  entity text not null,
  body blob, crc integer, cause integer, hollow integer not null default 0,                        -- the encoded op; NULL for events, and for what was forgotten
  primary key (device, seq)
) strict, without rowid;

CREATE TABLE tombstone (
  id text primary key,
  hlc integer not null
, lifted integer not null default 0) strict, without rowid;

CREATE TABLE memory (
  n integer primary key,
  id text not null unique,
  name text,
  content text not null,
  kind text not null,
  type text not null,
  scope text not null,
  resource_id text,
  layer text not null,
  salience real not null check (salience between 0 and 1),
  confidence real not null,
  topic text,
  trust text not null,
  valid_from integer,
  valid_to integer,
  superseded_by text,
  created_at integer not null,
  updated_at integer not null,
  content_hash text not null,
  metadata text not null            -- JSON
, archived_at integer, review text) strict;

CREATE TABLE name (                 -- every name that resolves, canonical ones and aliases alike
  name text primary key,
  memory_id text not null,
  created_at integer not null,
  canonical integer not null
, claimed text not null default '') strict, without rowid;

CREATE TABLE grip (
  id text primary key,
  memory_id text not null,
  event_id_start text not null,
  event_id_end text not null,
  span_start integer not null,
  span_end integer not null,
  excerpt text not null,
  source text not null,
  created_at integer not null
) strict, without rowid;

CREATE VIRTUAL TABLE memory_fts using fts5 (tokens, tokenize = 'ascii');

CREATE TABLE space (
  id integer primary key,
  name text not null unique
, crc integer) strict;

CREATE TABLE embedding (
  space integer not null,
  owner text not null,              -- a memory's or an event's id
  content_hash text not null,
  vector blob not null, crc integer,
  primary key (space, owner)
) strict, without rowid;

CREATE TABLE access (
  memory_id text primary key,
  total integer not null,
  last integer not null,
  logged integer not null           -- when the total last went into an op
, crc integer) strict, without rowid;

CREATE TABLE learned (
  session_id text primary key,
  n integer not null                -- events up to this arrival number have been distilled
, crc integer) strict, without rowid;

CREATE TABLE unlearned (            -- events stored with learn = false
  n integer primary key
, crc integer) strict;

CREATE TABLE job (
  name text primary key,
  runs integer not null,
  failures integer not null,
  last_start integer,
  last_ms integer,
  last_error text,
  crc integer, paused integer not null default 0, counts text not null default '{}') strict, without rowid;

CREATE TABLE meta (
  key text primary key,
  value text not null
, crc integer) strict, without rowid;

CREATE TABLE parked (               -- ops that this version cannot apply: kept, tried again by a later one
  device text not null,
  seq integer not null,
  entity text,                      -- what it is about, as far as that can be read
  op blob not null,
  why text not null, crc integer,
  primary key (device, seq)
) strict, without rowid;

CREATE TABLE heard (                -- how many ops of each device were received
  device text primary key,
  ops integer not null
, crc integer) strict, without rowid;

CREATE TABLE session (
  id text primary key,
  agent text not null,
  project text,
  start integer not null,
  last integer not null,            -- time of the newest event
  closed integer,                   -- time of the newest session_end
  title text not null,              -- the first words the user said
  title_at text not null,           -- where they stand: time, seq and id of their event, in an order of texts
  events integer not null,
  last_n integer not null           -- arrival number of the newest event to be distilled here
) strict, without rowid;

CREATE TABLE claim (                -- live claims to names; who came first holds the name
  name text not null,
  hlc integer not null,
  device text not null,
  memory_id text not null,
  primary key (name, hlc, device, memory_id)
) strict, without rowid;

CREATE TABLE conflict (             -- versions of a field that lost without having been seen, and say something else
  memory_id text not null,
  field integer not null,
  hlc integer not null,
  device text not null,
  primary key (memory_id, field, hlc, device)
) strict, without rowid;

CREATE TABLE counted (              -- how often each device recalled a memory, as far as its log says
  memory_id text not null,
  device text not null,
  total integer not null,
  last integer not null,
  primary key (memory_id, device)
) strict, without rowid;

CREATE TABLE sync_state (
  account blob primary key,
  cursor text not null default '',
  store_id text not null default '',
  generation integer not null default 0,
  sealed_seq integer not null default 0,
  beacon_at integer not null default 0,   -- when this device last told the others what it has seen
  beacon_n integer not null default 0,    -- and the place in its home lane after that
  verified_at integer not null default 0, -- when every lane was last read again from the server
  round_at integer,                       -- when a round last ended well
  error_at integer,
  error text                              -- the code of what ended the last round, if something did
, crc integer, snapshot text not null default '', snapshot_maker blob not null default x'') strict, without rowid;

CREATE TABLE lane (
  scope blob not null,
  device blob not null,
  n integer not null,
  tip blob not null,
  acked_n integer not null,
  low integer not null,
  low_prev blob not null,
  hw_n integer not null,
  hw_tip blob not null, crc integer,
  primary key (scope, device)
) strict, without rowid;

CREATE TABLE sealed (
  scope blob not null,
  device blob not null,
  n_from integer not null,
  n_to integer not null,
  seq_low integer not null,               -- the ops in it; 0 in a beacon
  seq_high integer not null,
  size integer not null,
  tip blob not null,                      -- what the object after it links to
  obj blob not null, crc integer,
  primary key (scope, device, n_from)
) strict;

CREATE TABLE link (
  scope blob not null,
  device blob not null,
  n integer not null,
  tip blob not null, crc integer,
  primary key (scope, device, n)
) strict, without rowid;

CREATE TABLE part (
  device text not null,
  seq integer not null,
  place integer not null,                 -- which part, from 0
  parts integer not null,                 -- of how many
  data blob not null, crc integer,
  primary key (device, seq, place)
) strict, without rowid;

CREATE TABLE placed (                     -- what does not live in the home scope
  entity text primary key,
  scope blob not null
, crc integer) strict, without rowid;

CREATE TABLE bound (                      -- projects whose new things live in a scope of their own
  project text primary key,
  scope blob not null,
  seq integer not null                    -- things first written after this op of this device
, crc integer) strict, without rowid;

CREATE TABLE account_log (
  seq integer primary key,
  entry blob not null
, crc integer) strict;

CREATE TABLE seen (                       -- when a device last said that it is there, by its own clock
  device blob primary key,
  at integer not null
, crc integer) strict, without rowid;

CREATE TABLE alarm (                      -- what a person must be told, until they say that they know
  id integer primary key,
  at integer not null,
  code text not null,
  subject text not null,
  message text not null,
  hint text not null
, crc integer) strict;

CREATE TABLE erased (
  device text not null,
  seq integer not null,
  at integer not null default 0, crc integer,          -- when a round first saw it
  primary key (device, seq)
) strict, without rowid;

CREATE TABLE unembedded (
  memory integer not null,          -- 1: a memory, 0: an event
  n integer not null,               -- its arrival number
  primary key (memory, n)
) strict, without rowid;

CREATE TABLE refused (              -- texts that the model of this space refused, until they or the space change
  memory integer not null,
  n integer not null,
  reason text not null, crc integer,             -- an error message; never a part of the text
  primary key (memory, n)
) strict, without rowid;

CREATE TABLE embed_queue (
  one integer primary key check (one = 1),
  space integer not null,
  memories integer not null,
  events integer not null
, crc integer) strict;

CREATE TABLE job_run (
  n integer primary key,            -- order of the runs: two may begin in the same millisecond
  job text not null,
  started integer not null,         -- UTC ms
  ms integer not null,
  error text,                       -- an error's code, never a text; null for a run that went well
  crc integer
) strict;

CREATE TABLE cause (
  n integer primary key,            -- order of arrival
  id text not null unique,          -- kind:ULID, as ops name it
  at integer not null,              -- the time in the ULID
  label text not null,              -- what it was about, known where it ran: it is not replicated
  crc integer
) strict;

CREATE TABLE toc_segment (
  id text primary key,              -- that of its first event
  session_id text not null,
  project text not null,
  day text not null,                -- 2026-11-21, where the person was
  place text not null,              -- of its first event among those of the session, as rows.PLACE
  last text not null,               -- the id of its last event
  start integer not null,           -- times of the first and the last event
  until integer not null,
  outline text not null,            -- JSON
  crc integer
) strict, without rowid;

CREATE TABLE toc_period (           -- of one project: what it has in a day, week, month or year
  level text not null,
  key text not null,
  project text not null,
  start integer not null,           -- times of the first and the last event in it
  until integer not null,
  outline text not null,            -- JSON
  crc integer,
  primary key (level, key, project)
) strict, without rowid;

CREATE TABLE toc_stale (            -- sessions that changed since their segments were cut
  session_id text primary key,
  place text not null,              -- of the first event that changed
  since text,                       -- of the first event that changed since a step of the session was written
  said integer not null,            -- 1: words came or went; 0: vectors came
  marks integer not null,           -- how often it was marked
  crc integer
) strict, without rowid;

CREATE TABLE handed (
  session_id text not null,
  ref text not null,                -- the id of a memory or an event
  at integer not null,              -- UTC ms
  crc integer,
  primary key (session_id, ref)
) strict, without rowid;

CREATE TABLE feedback (
  memory_id text not null,
  agent text not null,              -- '' for the person, and for an agent that says no name
  helped integer not null,          -- how often it did
  missed integer not null,          -- how often it did not
  last integer not null,            -- when that was said last
  crc integer, wrong integer not null default 0,
  primary key (memory_id, agent)
) strict, without rowid;

CREATE TABLE instruction_file (
  path text not null,               -- absolute
  project text not null,            -- '' where it is for all projects
  sections text not null,           -- JSON: the key of each place in the file, and the hash of what stood there last
  crc integer,
  primary key (path, project)
) strict, without rowid;

CREATE TABLE team_log (
  team blob not null,
  seq integer not null,
  entry blob not null,
  crc integer,
  primary key (team, seq)
) strict;

CREATE TABLE team_lane (                  -- a lane of a team as far as it is read; of this device's own, where it ends
  team blob not null,
  device blob not null,
  n integer not null,
  tip blob not null,
  crc integer,
  primary key (team, device)
) strict, without rowid;

CREATE TABLE team_outbox (                -- how far this device's changes are sealed for a team
  team blob primary key,
  device blob not null,
  sealed_seq integer not null,
  moved integer not null default 0,       -- the server's count of pushes when everything was read last
  crc integer
) strict, without rowid;

CREATE TABLE team_sealed (                -- sealed and not confirmed by the server yet
  team blob not null,
  n integer not null,
  after_seq integer not null,             -- `sealed_seq` before it
  tip blob not null,                      -- the lane's end before it
  obj blob not null,
  crc integer,
  primary key (team, n)
) strict;

CREATE TABLE account_state (
  seq integer primary key, -- of that entry
  state blob not null,
  crc integer
) strict;

CREATE TABLE replaced (
  entity text primary key,
  due integer not null,
  crc integer
) strict, without rowid;

CREATE TABLE writer_call (
  n integer primary key,
  at integer not null,              -- UTC ms, when it was reserved
  day text not null,                -- the civil day then, where the machine was: caps are by days and months
  job text not null,
  writer text not null,             -- the setting's value: openai, anthropic, claude, ...
  model text not null,
  input integer not null,           -- tokens; until it is settled the most that it can cost
  output integer not null,
  estimated integer not null,       -- 1 where the tokens are an upper bound, not all of them counted by the Writer
  outcome text not null,            -- open, done, or how it failed
  ms integer,                       -- how long it took
  crc integer
) strict;

CREATE TABLE prediction (
  project text not null,
  session_id text not null,         -- '' for the session that begins next
  ref text not null,                -- the id of a memory or an event
  kind text not null,               -- memory or event
  probability real not null,
  because text not null,            -- the signal that says most for it
  at integer not null,              -- UTC ms
  crc integer,
  primary key (project, session_id, ref)
) strict, without rowid;

CREATE TABLE surfaced (
  session_id text not null,
  ref text not null,
  project text not null,
  kind text not null,
  probability real not null,        -- as it was told
  tokens integer not null,
  at integer not null,              -- UTC ms
  outcome text,                     -- null while it may still be used
  judged integer,                   -- UTC ms
  crc integer,
  primary key (session_id, ref)
) strict, without rowid;

CREATE TABLE used (
  session_id text not null,
  ref text not null,
  project text not null,
  how text not null,
  at integer not null,              -- UTC ms
  crc integer,
  primary key (session_id, ref)
) strict, without rowid;

CREATE TABLE vault (
  agent text primary key,
  folder text not null unique,      -- absolute
  crc integer
) strict, without rowid;

CREATE TABLE vault_file (
  agent text not null,
  file text not null,               -- 'episodic', 'semantic', 'self', 'social', 'working'
  known text not null,              -- JSON: of each entry the memory's id, and digests of both sides; no words
  problem text not null,            -- why the file was not read or not written; '' when it was
  gone integer not null,            -- entries gone from the file that wait to be confirmed
  conflicts integer not null,       -- texts kept in the file beside the store's
  crc integer,
  primary key (agent, file)
) strict, without rowid;

CREATE TABLE tombstone_key (
  id text primary key,
  key blob not null
) strict, without rowid;

CREATE TABLE tombstone_words (
  digest text not null,             -- hex: 16 bytes of HMAC-SHA-256 of one form of the words
  entity text not null,             -- whose words they were: a memory or an event with a tombstone
  key text not null,                -- the key of the digest
  project text not null,            -- hex: digest of the project that they are refused in; '' for everywhere
  primary key (digest, entity, key, project)
) strict, without rowid;

CREATE TABLE tombstone_hit (
  entity text primary key,
  times integer not null,
  last integer not null,            -- UTC milliseconds
  crc integer
) strict, without rowid;

CREATE TABLE unconfirmed (
  device text not null,
  base integer not null,                  -- the place of the first bit
  bits blob not null,
  crc integer,
  primary key (device, base)
) strict, without rowid;

CREATE TABLE receipt (
  device text not null,             -- who says so
  scope blob not null,
  lane text not null,               -- whose lane of the scope
  n integer not null,               -- the last place that it has read
  at integer not null,              -- when it said so, by its own clock
  crc integer,
  primary key (device, scope, lane)
) strict, without rowid;

CREATE TABLE account_device (
  device text primary key,
  crc integer
) strict, without rowid;

CREATE TABLE unremembered (
  session_id text not null,
  since integer not null,           -- UTC milliseconds, somewhat before the host said so
  until integer,                    -- null while it is off
  agent text not null,              -- the host that said so
  seen integer not null,            -- when it said so first
  crc integer,
  primary key (session_id, since)
) strict, without rowid;

CREATE TABLE also_from (
  source_key text not null,
  memory_id text not null,
  primary key (source_key, memory_id)
) strict, without rowid;

CREATE TABLE session_agent (
  session_id text not null,
  agent text not null,
  project text not null,            -- '' where it belongs to none
  events integer not null,
  start integer not null,           -- times of the first and the last of them
  last integer not null,
  primary key (session_id, agent, project)
) strict, without rowid;

CREATE TABLE toc_told (
  session_id text not null,
  place text not null,              -- of the first event that was read, as in toc_segment
  since text not null,              -- of the first that was shown beside these
  last text not null,               -- of the last
  title text not null,              -- '' where it gave none that counts
  summary text not null,
  crc integer,
  primary key (session_id, place)
) strict, without rowid;

CREATE INDEX event_dedupe on event (dedupe_key);

CREATE INDEX op_entity on op (entity);

CREATE INDEX memory_hash on memory (content_hash);

CREATE INDEX memory_created on memory (created_at, n);

CREATE INDEX memory_source on memory (json_extract(metadata, '$.source_key'))
  where json_extract(metadata, '$.source_key') is not null;

CREATE INDEX memory_layer on memory (layer) where layer <> 'archive';

CREATE INDEX name_memory on name (memory_id);

CREATE INDEX grip_memory on grip (memory_id);

CREATE INDEX grip_event on grip (event_id_start);

CREATE INDEX grip_event_end on grip (event_id_end);

CREATE INDEX event_session on event (session_id, ts, seq);

CREATE INDEX event_ts on event (ts, seq);

CREATE INDEX op_erases on op (entity) where type in (3, 8);

CREATE INDEX parked_entity on parked (entity);

CREATE INDEX session_start on session (start);

CREATE INDEX claim_memory on claim (memory_id);

CREATE INDEX name_claimed on name (claimed);

CREATE INDEX grip_long on grip (event_id_start) where event_id_start <> event_id_end;

CREATE INDEX sealed_size on sealed (device, size);

CREATE UNIQUE INDEX alarm_once on alarm (code, subject);

CREATE INDEX job_run_job on job_run (job, n);

CREATE INDEX cause_at on cause (at, n);

CREATE INDEX op_cause on op (cause, type) where cause is not null;

CREATE INDEX event_compaction on event (session_id, n) where type = 'compaction';

CREATE INDEX toc_segment_session on toc_segment (session_id, place);

CREATE INDEX toc_segment_day on toc_segment (day, project, start, id);

CREATE INDEX toc_segment_start on toc_segment (start, id);

CREATE INDEX handed_ref on handed (ref);

CREATE INDEX handed_at on handed (at);

CREATE INDEX op_whole on op (entity) where body is not null and hollow = 0;

CREATE INDEX op_hollow on op (entity, hlc) where hollow = 1;

CREATE INDEX replaced_due on replaced (due);

CREATE INDEX writer_call_day on writer_call (day);

CREATE INDEX prediction_ref on prediction (ref);

CREATE INDEX prediction_at on prediction (at);

CREATE INDEX surfaced_ref on surfaced (ref);

CREATE INDEX surfaced_at on surfaced (at);

CREATE INDEX surfaced_judged on surfaced (judged) where judged is not null;

CREATE INDEX used_ref on used (ref);

CREATE INDEX used_project on used (project, at);

CREATE INDEX memory_successor on memory (superseded_by) where superseded_by is not null;

CREATE INDEX memory_of_vault on memory (resource_id) where resource_id >= 'vault:' and resource_id < 'vault;';

CREATE INDEX tombstone_words_of on tombstone_words (entity);

CREATE INDEX memory_doubt on memory (id) where instr(metadata, '"may_supersede"') > 0;

CREATE INDEX also_from_memory on also_from (memory_id);

CREATE INDEX session_agent_project on session_agent (project, session_id);

CREATE INDEX session_project on session (project) where project is not null;

CREATE INDEX memory_listed on memory (type, kind, layer, archived_at)
  where layer not in ('identity', 'active') and archived_at is null;

CREATE INDEX memory_of_project on memory (resource_id) where scope = 'project' and resource_id is not null;

CREATE INDEX memory_of_session on memory (resource_id) where scope = 'session' and resource_id is not null;

CREATE INDEX memory_review on memory (created_at, n, review, archived_at) where review is not null;

CREATE TRIGGER event_is_kept before delete on event
begin
  select raise(abort, 'events are append-only; forget is the only way to erase one');
end;

CREATE TRIGGER op_was_erased after update of body on op
when new.body is null and old.body is not null and exists (select 1 from sync_state)
begin
  insert or ignore into erased (device, seq) values (new.device, new.seq);
end;

CREATE TRIGGER event_was_erased after update of erased on event
when new.erased > old.erased and exists (select 1 from sync_state)
begin
  insert or ignore into erased (device, seq) select device, seq from op where entity = new.id and type = 1;
end;

CREATE TRIGGER event_is_immutable before update of n, id, device, agent, session_id, project, ts, utc_offset, type, role,
  text, metadata, dedupe_key, trust, erased, seq, forgotten on event
when new.id <> old.id or new.n <> old.n or (new.device = old.device and new.seq = old.seq and (new.erased <= old.erased
  or new.ts <> old.ts or new.session_id <> old.session_id or new.dedupe_key <> old.dedupe_key))
begin
  select raise(abort, 'events are append-only; forget is the only way to erase one');
end;
