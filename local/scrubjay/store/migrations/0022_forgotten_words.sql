-- What is left of forgotten words: keyed digests, by which the same words are known again and refused.
create table tombstone_key (
  id text primary key,
  key blob not null
) strict, without rowid;
create table tombstone_words (
  digest text not null,             -- hex: 16 bytes of HMAC-SHA-256 of one form of the words
  entity text not null,             -- whose words they were: a memory or an event with a tombstone
  key text not null,                -- the key of the digest
  project text not null,            -- hex: digest of the project that they are refused in; '' for everywhere
  primary key (digest, entity, key, project)
) strict, without rowid;
create index tombstone_words_of on tombstone_words (entity);
alter table tombstone add column lifted integer not null default 0;  -- the words were brought back by the person
-- How often this device refused what was forgotten, and when last.
create table tombstone_hit (
  entity text primary key,
  times integer not null,
  last integer not null,            -- UTC milliseconds
  crc integer
) strict, without rowid;
