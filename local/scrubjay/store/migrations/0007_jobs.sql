-- A job that was paused stays so, and how its last runs went is kept. Leases are gone: one process has the store.
alter table job drop column holder;
alter table job drop column until;
alter table job add column paused integer not null default 0;
update job set crc = null;
create table job_run (
  n integer primary key,            -- order of the runs: two may begin in the same millisecond
  job text not null,
  started integer not null,         -- UTC ms
  ms integer not null,
  error text,                       -- an error's code, never a text; null for a run that went well
  crc integer
) strict;
create index job_run_job on job_run (job, n);
