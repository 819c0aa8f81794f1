-- Writes to a memory that were superseded lose their values. One without any is `hollow`: it says only what it had seen, and
-- is read when an op comes that it may have superseded. So an edit costs what the living writes of a memory cost.
alter table op add column hollow integer not null default 0;
create index op_whole on op (entity) where body is not null and hollow = 0;
create index op_hollow on op (entity, hlc) where hollow = 1;
update op set crc = null;           -- the check sum covers the new column
-- Memories of which words were replaced, and when these are erased: undo needs them till then.
create table replaced (
  entity text primary key,
  due integer not null,
  crc integer
) strict, without rowid;
create index replaced_due on replaced (due);
-- What was replaced before is due in a day.
insert into replaced (entity, due)
  select entity, unixepoch() * 1000 + 86400000 from op where type = 2 and body is not null group by entity having count(*) > 1;
