-- What was taken from a snapshot and no lane has said yet: one bit for each op, of runs of 4,096 places of a device.
create table unconfirmed (
  device text not null,
  base integer not null,                  -- the place of the first bit
  bits blob not null,
  crc integer,
  primary key (device, base)
) strict, without rowid;
-- What a first reading did with a snapshot ('' nothing yet, 'loading', 'loaded', 'refused'), and which device made it.
alter table sync_state add column snapshot text not null default '';
alter table sync_state add column snapshot_maker blob not null default x'';
update sync_state set crc = null;         -- the check sum covers the new column
