-- What a device knows of the teams that its person is in. Empty, and never read, without teams.

create table team_log (
  team blob not null,
  seq integer not null,
  entry blob not null,
  crc integer,
  primary key (team, seq)
) strict;
create table team_lane (                  -- a lane of a team as far as it is read; of this device's own, where it ends
  team blob not null,
  device blob not null,
  n integer not null,
  tip blob not null,
  crc integer,
  primary key (team, device)
) strict, without rowid;
create table team_outbox (                -- how far this device's changes are sealed for a team
  team blob primary key,
  device blob not null,
  sealed_seq integer not null,
  moved integer not null default 0,       -- the server's count of pushes when everything was read last
  crc integer
) strict, without rowid;
create table team_sealed (                -- sealed and not confirmed by the server yet
  team blob not null,
  n integer not null,
  after_seq integer not null,             -- `sealed_seq` before it
  tip blob not null,                      -- the lane's end before it
  obj blob not null,
  crc integer,
  primary key (team, n)
) strict;
