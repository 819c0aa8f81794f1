-- What a device knows of the account it replicates with. Empty, and never read, while sync is off.

-- The account: one row. `cursor` is where the server's next page begins; ops of this device up to `sealed_seq` are sealed.
create table sync_state (
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
) strict, without rowid;

-- A lane as far as it is held: everything from `low` to `n`. `low_prev` is what the object before `low` must link to,
-- while a new device still reads backwards. `hw_n` is the furthest place that anybody has proved to exist.
create table lane (
  scope blob not null,
  device blob not null,
  n integer not null,
  tip blob not null,
  acked_n integer not null,
  low integer not null,
  low_prev blob not null,
  hw_n integer not null,
  hw_tip blob not null,
  primary key (scope, device)
) strict, without rowid;

-- Objects as they were sent, to give them back to a server that lost them: own lanes whole, others up to a limit.
create table sealed (
  scope blob not null,
  device blob not null,
  n_from integer not null,
  n_to integer not null,
  seq_low integer not null,               -- the ops in it; 0 in a beacon
  seq_high integer not null,
  size integer not null,
  tip blob not null,                      -- what the object after it links to
  obj blob not null,
  primary key (scope, device, n_from)
) strict;                                -- with rowids: rows of half a megabyte do not belong into an index
create index sealed_size on sealed (device, size);

-- Links of the latest places, to compare with what other devices saw.
create table link (
  scope blob not null,
  device blob not null,
  n integer not null,
  tip blob not null,
  primary key (scope, device, n)
) strict, without rowid;

-- Parts of an op that no one object could hold, until all are there.
create table part (
  device text not null,
  seq integer not null,
  place integer not null,                 -- which part, from 0
  parts integer not null,                 -- of how many
  data blob not null,
  primary key (device, seq, place)
) strict, without rowid;

create table placed (                     -- what does not live in the home scope
  entity text primary key,
  scope blob not null
) strict, without rowid;
create table bound (                      -- projects whose new things live in a scope of their own
  project text primary key,
  scope blob not null,
  seq integer not null                    -- things first written after this op of this device
) strict, without rowid;

create table account_log (
  seq integer primary key,
  entry blob not null
) strict;
create table seen (                       -- when a device last said that it is there, by its own clock
  device blob primary key,
  at integer not null
) strict, without rowid;
create table alarm (                      -- what a person must be told, until they say that they know
  id integer primary key,
  at integer not null,
  code text not null,
  subject text not null,
  message text not null,
  hint text not null
) strict;
create unique index alarm_once on alarm (code, subject);

-- Ops whose content was erased after they may have been sent: what holds them is packed anew without it.
create table erased (
  device text not null,
  seq integer not null,
  at integer not null default 0,          -- when a round first saw it
  primary key (device, seq)
) strict, without rowid;
create trigger op_was_erased after update of body on op
when new.body is null and old.body is not null and exists (select 1 from sync_state)
begin
  insert or ignore into erased (device, seq) values (new.device, new.seq);
end;
create trigger event_was_erased after update of erased on event
when new.erased > old.erased and exists (select 1 from sync_state)
begin
  insert or ignore into erased (device, seq) select device, seq from op where entity = new.id and type = 1;
end;
