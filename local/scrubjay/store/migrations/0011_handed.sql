-- What a session of an agent was handed without having asked, so that nothing is handed to it twice. Ids alone, no text.
create table handed (
  session_id text not null,
  ref text not null,                -- the id of a memory or an event
  at integer not null,              -- UTC ms
  crc integer,
  primary key (session_id, ref)
) strict, without rowid;
create index handed_ref on handed (ref);  -- a memory that is forgotten takes its rows along
create index handed_at on handed (at);
