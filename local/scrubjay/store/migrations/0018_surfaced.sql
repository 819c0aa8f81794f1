-- What sessions will probably need, what they were told of it ahead, and what they used. Ids alone, no text.
create table prediction (
  project text not null,
  session_id text not null,         -- '' for the session that begins next
  ref text not null,                -- the id of a memory or an event
  kind text not null,               -- memory or event
  probability real not null,
  because text not null,            -- the signal that says most for it
  at integer not null,              -- UTC ms
  crc integer,
  primary key (project, session_id, ref)
) strict, without rowid;
create index prediction_ref on prediction (ref);
create index prediction_at on prediction (at);
create table surfaced (
  session_id text not null,
  ref text not null,
  project text not null,
  kind text not null,
  probability real not null,        -- as it was told
  tokens integer not null,
  at integer not null,              -- UTC ms
  outcome text,                     -- null while it may still be used
  judged integer,                   -- UTC ms
  crc integer,
  primary key (session_id, ref)
) strict, without rowid;
create index surfaced_ref on surfaced (ref);
create index surfaced_at on surfaced (at);
create index surfaced_judged on surfaced (judged) where judged is not null;
create table used (
  session_id text not null,
  ref text not null,
  project text not null,
  how text not null,
  at integer not null,              -- UTC ms
  crc integer,
  primary key (session_id, ref)
) strict, without rowid;
create index used_ref on used (ref);
create index used_project on used (project, at);
