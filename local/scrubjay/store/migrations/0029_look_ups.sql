-- What was looked for by reading everything, where a store grows.

-- Further places of imported files that say the same as a memory: `also_from` in its metadata. An import asks for these
-- of every batch of every file.
create table also_from (
  source_key text not null,
  memory_id text not null,
  primary key (source_key, memory_id)
) strict, without rowid;
create index also_from_memory on also_from (memory_id);
insert or ignore into also_from (source_key, memory_id)
select json_extract(iif(a.type = 'object', a.value, '{}'), '$.source_key') as source_key, m.id
from memory m, json_each(m.metadata, '$.also_from') a
where instr(m.metadata, '"also_from"') > 0
  and json_type(iif(a.type = 'object', a.value, '{}'), '$.source_key') = 'text';

-- What each agent said in a session for a project: what `agents` adds up instead of all events.
create table session_agent (
  session_id text not null,
  agent text not null,
  project text not null,            -- '' where it belongs to none
  events integer not null,
  start integer not null,           -- times of the first and the last of them
  last integer not null,
  primary key (session_id, agent, project)
) strict, without rowid;
insert into session_agent (session_id, agent, project, events, start, last)
select session_id, agent, coalesce(project, ''), count(*), min(ts), max(ts) from event where not forgotten
group by session_id, agent, coalesce(project, '');

create index session_agent_project on session_agent (project, session_id);
create index session_project on session (project) where project is not null;

-- `stats` counts memories by type and kind: it reads this instead of all that they say.
create index memory_listed on memory (type, kind, layer, archived_at)
  where layer not in ('identity', 'active') and archived_at is null;
create index memory_of_project on memory (resource_id) where scope = 'project' and resource_id is not null;
create index memory_of_session on memory (resource_id) where scope = 'session' and resource_id is not null;

-- A page of what a person is asked comes newest first, and what was answered once is left out without being read.
drop index memory_review;
create index memory_review on memory (created_at, n, review, archived_at) where review is not null;
