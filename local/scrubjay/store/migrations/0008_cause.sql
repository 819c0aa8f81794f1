-- What wrote an op: an import, a run of a job, a request. Of an event's op nothing but this column says it; of the others
-- the body does too.
create table cause (
  n integer primary key,            -- order of arrival
  id text not null unique,          -- kind:ULID, as ops name it
  at integer not null,              -- the time in the ULID
  label text not null,              -- what it was about, known where it ran: it is not replicated
  crc integer
) strict;
create index cause_at on cause (at, n);
alter table op add column cause integer;  -- cause.n; NULL: it says none
create index op_cause on op (cause, type) where cause is not null;
update op set crc = null;           -- the check sum covers the new column

alter table memory add column archived_at integer;
