-- What other devices say that they have read, in their checkpoints: so they have carried out what was forgotten there.
create table receipt (
  device text not null,             -- who says so
  scope blob not null,
  lane text not null,               -- whose lane of the scope
  n integer not null,               -- the last place that it has read
  at integer not null,              -- when it said so, by its own clock
  crc integer,
  primary key (device, scope, lane)
) strict, without rowid;
-- The devices of the account that are in force.
create table account_device (
  device text primary key,
  crc integer
) strict, without rowid;
