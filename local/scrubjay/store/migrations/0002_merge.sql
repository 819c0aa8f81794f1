-- Ops of other devices come in any order, so nothing that a reader sees may depend on the order of arrival.
drop trigger event_is_immutable;
alter table event add column seq integer not null default 0;        -- its op's place in the log of its device
alter table event add column forgotten integer not null default 0;  -- 1: the row only keeps it from coming back
update event set
  seq = coalesce((select seq from op where op.entity = event.id and op.device = event.device and op.type = 1), 0),
  forgotten = event.id in (select id from tombstone);
drop index event_session;
drop index event_ts;
create index event_session on event (session_id, ts, seq);
create index event_ts on event (ts, seq);

-- Another device means another author of the same event: two imported one file before they met, or this one goes on
-- under a new id. Otherwise only forget changes a row.
create trigger event_is_immutable before update on event
when new.id <> old.id or new.n <> old.n or (new.device = old.device and (new.erased <= old.erased
  or new.ts <> old.ts or new.session_id <> old.session_id or new.dedupe_key <> old.dedupe_key))
begin
  select raise(abort, 'events are append-only; forget is the only way to erase one');
end;

create index op_erases on op (entity) where type in (3, 8);  -- FORGET and BLANK may come before what they are about

create table parked (               -- ops that this version cannot apply: kept, tried again by a later one
  device text not null,
  seq integer not null,
  entity text,                      -- what it is about, as far as that can be read
  op blob not null,
  why text not null,
  primary key (device, seq)
) strict, without rowid;
create index parked_entity on parked (entity);
create table heard (                -- how many ops of each device were received
  device text primary key,
  ops integer not null
) strict, without rowid;

-- Projections.
drop table session;
create table session (
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
create index session_start on session (start);

create table claim (                -- live claims to names; who came first holds the name
  name text not null,
  hlc integer not null,
  device text not null,
  memory_id text not null,
  primary key (name, hlc, device, memory_id)
) strict, without rowid;
create index claim_memory on claim (memory_id);
alter table name add column claimed text not null default '';  -- the name as it was claimed: another one than it shows as
create index name_claimed on name (claimed);

create table conflict (             -- versions of a field that lost without having been seen, and say something else
  memory_id text not null,
  field integer not null,
  hlc integer not null,
  device text not null,
  primary key (memory_id, field, hlc, device)
) strict, without rowid;
create table counted (              -- how often each device recalled a memory, as far as its log says
  memory_id text not null,
  device text not null,
  total integer not null,
  last integer not null,
  primary key (memory_id, device)
) strict, without rowid;
create index grip_long on grip (event_id_start) where event_id_start <> event_id_end;
