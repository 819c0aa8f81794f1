-- Files of instructions for agents (CLAUDE.md, AGENTS.md) that were imported on this device: they are looked at again.
create table instruction_file (
  path text not null,               -- absolute
  project text not null,            -- '' where it is for all projects
  sections text not null,           -- JSON: the key of each place in the file, and the hash of what stood there last
  crc integer,
  primary key (path, project)
) strict, without rowid;
