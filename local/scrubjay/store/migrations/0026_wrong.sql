-- How often somebody said of a memory that it is wrong, beside that it helped or did not.
alter table feedback add column wrong integer not null default 0;
update feedback set crc = null;     -- the check sum covers the new column
