-- What a job has counted so far, as JSON by name: facts that an observer promoted, and lines of its answers that were dropped.
alter table job add column counts text not null default '{}';
update job set crc = null;          -- the check sum covers the new column
