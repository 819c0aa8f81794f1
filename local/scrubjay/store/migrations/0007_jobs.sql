-- A job that was paused stays so, and how its last runs went is kept. Leases are gone: one process has the store.
alter table job drop column holder;
alter table job drop column until;
alter table job add column paused integer not null default 0;
update job set crc = null;
create table job_run (
  job text not null,
  started integer not null,         -- UTC ms
  ms integer not null,
  error text,                       -- an error's code, never a text; null for a run that went well
  crc integer,
  primary key (job, started)
) strict, without rowid;
