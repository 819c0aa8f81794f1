-- What the server reads out of searchable scopes. All but vectors can be made again from the lanes.

create table mem_lane (
  account blob not null,
  scope blob not null,
  device blob not null,
  n integer not null, -- up to where the lane has been read
  tip blob not null, -- and that place's link
  version integer not null, -- of the code that read it
  primary key (account, scope, device)
) strict, without rowid;

create table mem (
  account blob not null,
  scope blob not null,
  id text not null,
  fields blob not null, -- the shown version of each field, MessagePack; empty when the memory was forgotten
  text text, -- null: not all of it has arrived, or it was forgotten
  type text not null,
  topic text,
  created integer not null,
  updated integer not null,
  superseded integer not null,
  hash text not null, -- of the content: what a vector must be of
  embedded integer not null,
  primary key (account, scope, id)
) strict, without rowid;
create index mem_topic on mem (account, scope, topic) where topic is not null;
create index mem_bare on mem (account, scope, id) where embedded = 0 and text is not null;

create table mem_word (
  account blob not null,
  scope blob not null,
  word text not null,
  id text not null,
  primary key (account, scope, word, id)
) strict, without rowid;
create index mem_word_id on mem_word (account, scope, id);

create table mem_embedding (
  account blob not null,
  scope blob not null,
  id text not null,
  vec blob not null, -- float32, little-endian
  primary key (account, scope, id)
) strict;

create table mem_label ( -- vectors of topics
  account blob not null,
  scope blob not null,
  topic text not null,
  vec blob not null,
  primary key (account, scope, topic)
) strict, without rowid;
