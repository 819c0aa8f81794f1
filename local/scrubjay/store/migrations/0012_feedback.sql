-- Whether memories helped, as agents and the person said on this device.
create table feedback (
  memory_id text not null,
  agent text not null,              -- '' for the person, and for an agent that says no name
  helped integer not null,          -- how often it did
  missed integer not null,          -- how often it did not
  last integer not null,            -- when that was said last
  crc integer,
  primary key (memory_id, agent)
) strict, without rowid;
