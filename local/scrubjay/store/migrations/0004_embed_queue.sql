-- What has no vector in the embedding space in use, so that looking for work reads one row and not every text.
-- Both tables are empty while no model is in use. `scrubjay rebuild` makes them again.
create table unembedded (
  memory integer not null,          -- 1: a memory, 0: an event
  n integer not null,               -- its arrival number
  primary key (memory, n)
) strict, without rowid;
create table refused (              -- texts that the model of this space refused, until they or the space change
  memory integer not null,
  n integer not null,
  reason text not null,             -- an error message; never a part of the text
  primary key (memory, n)
) strict, without rowid;

-- The space that the two tables are about, in at most one row. What arrived up to `memories` and `events` was there
-- before the space was entered and has not been looked at yet: that is done in steps, newest first.
create table embed_queue (
  one integer primary key check (one = 1),
  space integer not null,
  memories integer not null,
  events integer not null
) strict;
