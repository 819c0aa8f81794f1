-- The table of contents by time (scrubjay.toc): derived in the background from events and their vectors. It holds places
-- in events and keywords, no sentences. `project` is '' where events have none.
create table toc_segment (
  id text primary key,              -- that of its first event
  session_id text not null,
  project text not null,
  day text not null,                -- 2026-11-21, where the person was
  place text not null,              -- of its first event among those of the session, as rows.PLACE
  last text not null,               -- the id of its last event
  start integer not null,           -- times of the first and the last event
  until integer not null,
  outline text not null,            -- JSON
  crc integer
) strict, without rowid;
create index toc_segment_session on toc_segment (session_id, place);
create index toc_segment_day on toc_segment (day, project, start, id);
create index toc_segment_start on toc_segment (start, id);

create table toc_period (           -- of one project: what it has in a day, week, month or year
  level text not null,
  key text not null,
  project text not null,
  start integer not null,           -- times of the first and the last event in it
  until integer not null,
  outline text not null,            -- JSON
  crc integer,
  primary key (level, key, project)
) strict, without rowid;

create table toc_stale (            -- sessions that changed since their segments were cut
  session_id text primary key,
  place text not null,              -- of the first event that changed
  since text,                       -- of the first event that changed since a step of the session was written
  said integer not null,            -- 1: words came or went; 0: vectors came
  marks integer not null,           -- how often it was marked
  crc integer
) strict, without rowid;
insert into toc_stale (session_id, place, said, marks) select id, '', 1, 1 from session;
