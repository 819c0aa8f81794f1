-- Plain files of agents' memories on this device: in which folders they are, and what they and the store last agreed on.
create table vault (
  agent text primary key,
  folder text not null unique,      -- absolute
  crc integer
) strict, without rowid;
create table vault_file (
  agent text not null,
  file text not null,               -- 'episodic', 'semantic', 'self', 'social', 'working'
  known text not null,              -- JSON: of each entry the memory's id, and digests of both sides; no words
  problem text not null,            -- why the file was not read or not written; '' when it was
  gone integer not null,            -- entries gone from the file that wait to be confirmed
  conflicts integer not null,       -- texts kept in the file beside the store's
  crc integer,
  primary key (agent, file)
) strict, without rowid;
create index memory_of_vault on memory (resource_id) where resource_id >= 'vault:' and resource_id < 'vault;';
