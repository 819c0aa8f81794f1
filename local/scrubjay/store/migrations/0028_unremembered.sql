-- When memory was switched off in a session: what was said meanwhile is not stored, whichever way it comes. No words.
create table unremembered (
  session_id text not null,
  since integer not null,           -- UTC milliseconds, somewhat before the host said so
  until integer,                    -- null while it is off
  agent text not null,              -- the host that said so
  seen integer not null,            -- when it said so first
  crc integer,
  primary key (session_id, since)
) strict, without rowid;
