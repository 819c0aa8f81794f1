-- What the server reads out of searchable scopes. All but vectors can be made again from the lanes.

create table mem_lane (
  account bytea not null,
  scope bytea not null,
  device bytea not null,
  n bigint not null, -- up to where the lane has been read
  tip bytea not null, -- and that place's link
  version bigint not null, -- of the code that read it
  primary key (account, scope, device)
);

create table mem (
  account bytea not null,
  scope bytea not null,
  id text collate "C" not null,
  fields bytea not null, -- the shown version of each field, MessagePack; empty when the memory was forgotten
  text text, -- null: not all of it has arrived, or it was forgotten
  type text not null,
  topic text,
  created bigint not null,
  updated bigint not null,
  superseded bigint not null,
  hash text not null, -- of the content: what a vector must be of
  embedded bigint not null,
  primary key (account, scope, id)
);
create index mem_topic on mem (account, scope, topic) where topic is not null;
create index mem_bare on mem (account, scope, id) where embedded = 0 and text is not null;

create table mem_word (
  account bytea not null,
  scope bytea not null,
  word text collate "C" not null,
  id text collate "C" not null,
  primary key (account, scope, word, id)
);
create index mem_word_id on mem_word (account, scope, id);

create table mem_embedding (
  account bytea not null,
  scope bytea not null,
  id text collate "C" not null,
  vec bytea not null, -- becomes pgvector's type when the server has it
  primary key (account, scope, id)
);

create table mem_label ( -- vectors of topics
  account bytea not null,
  scope bytea not null,
  topic text not null,
  vec bytea not null,
  primary key (account, scope, topic)
);
