-- What happened. The text is here and nowhere else; an event's op points at its row.
create table event (
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
) strict;
create index event_dedupe on event (dedupe_key);  -- not unique: two devices may import the same file before they meet
create index event_session on event (session_id, ts, n);
create index event_ts on event (ts);

create trigger event_is_immutable before update on event
when new.erased <= old.erased or new.id <> old.id or new.device <> old.device or new.ts <> old.ts
  or new.session_id <> old.session_id or new.dedupe_key <> old.dedupe_key or new.n <> old.n
begin
  select raise(abort, 'events are append-only; forget is the only way to erase one');
end;
create trigger event_is_kept before delete on event
begin
  select raise(abort, 'events are append-only; forget is the only way to erase one');
end;

-- Every change to anything that is not derived. An event's body is NULL here: the event's row holds it.
create table op (
  device text not null,
  seq integer not null,
  op_id blob not null,
  hlc integer not null,
  type integer not null,
  entity text not null,
  body blob,                        -- the encoded op; NULL for events, and for what was forgotten
  primary key (device, seq)
) strict, without rowid;
create index op_entity on op (entity);

create table tombstone (
  id text primary key,
  hlc integer not null
) strict, without rowid;

-- Projections: scrubjay rebuild makes everything below again from the above.
create table session (
  id text primary key,
  agent text not null,
  project text,
  start integer not null,
  last integer not null,            -- time of the newest event
  closed integer,                   -- time of the newest session_end
  title text not null,              -- the first words the user said
  events integer not null,
  last_n integer not null           -- arrival number of the newest event
) strict, without rowid;
create index session_start on session (start);

create table memory (
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
) strict;
create index memory_hash on memory (content_hash);
create index memory_created on memory (created_at, n);
create index memory_source on memory (json_extract(metadata, '$.source_key'))
  where json_extract(metadata, '$.source_key') is not null;
create index memory_layer on memory (layer) where layer <> 'archive';

create table name (                 -- every name that resolves, canonical ones and aliases alike
  name text primary key,
  memory_id text not null,
  created_at integer not null,
  canonical integer not null
) strict, without rowid;
create index name_memory on name (memory_id);

create table grip (
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
create index grip_memory on grip (memory_id);
create index grip_event on grip (event_id_start);
create index grip_event_end on grip (event_id_end);

-- Our own tokens (stems, character pairs), joined by spaces; the ascii tokenizer only splits them again.
create virtual table event_fts using fts5 (tokens, tokenize = 'ascii');
create virtual table memory_fts using fts5 (tokens, tokenize = 'ascii');

-- Vectors: one row an owner and space. Spaces are never mixed.
create table space (
  id integer primary key,
  name text not null unique
) strict;
create table embedding (
  space integer not null,
  owner text not null,              -- a memory's or an event's id
  content_hash text not null,
  vector blob not null,
  primary key (space, owner)
) strict, without rowid;

-- Local registers, not replicated: this device's counts, what was learned, how the jobs went.
create table access (
  memory_id text primary key,
  total integer not null,
  last integer not null,
  logged integer not null           -- when the total last went into an op
) strict, without rowid;
create table learned (
  session_id text primary key,
  n integer not null                -- events up to this arrival number have been distilled
) strict, without rowid;
create table unlearned (            -- events stored with learn = false
  n integer primary key
) strict;
create table job (
  name text primary key,
  runs integer not null,
  failures integer not null,
  last_start integer,
  last_ms integer,
  last_error text,
  holder text,                      -- who runs it now
  until integer                     -- when that lease ends
) strict, without rowid;
create table meta (
  key text primary key,
  value text not null
) strict, without rowid;
