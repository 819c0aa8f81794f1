-- Times are UTC milliseconds; flags are 0 or 1; ids, hashes and objects are blobs.

create table meta (
  k text primary key,
  v text not null
) strict, without rowid;

create table account (
  id blob primary key,
  name text not null unique, -- the user name, folded: what a login is looked up by
  auth_method integer not null, -- 1: a derived key, hashed with Argon2id
  kdf blob not null, -- how the client derives its key, MessagePack
  auth_hash blob not null,
  auth_salt blob not null,
  totp blob, -- the second factor's secret; null without one
  totp_step integer not null default 0, -- the last time step that was used: a code works once
  log_seq integer not null,
  log_head blob not null,
  keyring blob, -- hash of the keyring in force
  gseq integer not null default 0,
  bytes integer not null default 0,
  objects integer not null default 0,
  superseded integer not null default 0, -- bytes that packs stand in place of, until they are deleted
  quota integer, -- null: the server's default
  status integer not null default 0, -- 0 in force, 1 locked by the operator
  created integer not null
) strict, without rowid;

create table account_log (
  account blob not null,
  seq integer not null,
  hash blob not null,
  entry blob not null,
  primary key (account, seq)
) strict, without rowid;

create table device (
  account blob not null,
  id blob not null,
  sign_pub blob not null,
  hpke_pub blob not null,
  limited integer not null,
  revoked_at integer,
  last_seen integer not null,
  primary key (account, id)
) strict, without rowid;
create index device_id on device (id);

create table token (
  hash blob primary key, -- SHA-256 of the token
  account blob not null,
  device blob, -- null for a pending one
  kind integer not null, -- 1 pending, 2 device
  expires integer not null
) strict, without rowid;
create index token_account on token (account, device, expires);
create index token_expires on token (expires);

create table wrap (
  account blob not null,
  target blob not null,
  kind integer not null,
  version integer not null,
  ct blob not null,
  primary key (account, target, kind, version)
) strict, without rowid;

create table lane (
  account blob not null,
  scope blob not null,
  device blob not null,
  n integer not null,
  tip blob not null,
  primary key (account, scope, device)
) strict, without rowid;

create table object (
  account blob not null,
  gseq integer not null,
  scope blob not null,
  device blob not null,
  kind integer not null,
  n_from integer not null,
  n_to integer not null,
  hash blob not null, -- the object's link
  tip blob not null, -- what the next object's prev must be
  size integer not null,
  received integer not null,
  superseded_at integer, -- a pack stands in its place since then
  body blob not null
) strict;
create unique index object_g on object (account, gseq) where superseded_at is null;
create unique index object_l on object (account, scope, device, n_from) where superseded_at is null;
create index object_old on object (account, scope, device, n_from) where superseded_at is not null;
create index object_superseded on object (superseded_at) where superseded_at is not null;

create table blob (
  account blob not null,
  hash blob not null, -- SHA-256 of the whole object
  scope blob not null,
  kind integer not null,
  size integer not null,
  received integer not null,
  replaced_at integer, -- a keyring that is not in force any more
  body blob not null,
  primary key (account, hash)
) strict, without rowid;
create index blob_replaced on blob (replaced_at) where replaced_at is not null;

create table enroll (
  id blob primary key,
  account blob not null,
  device blob not null,
  sign_pub blob not null,
  wrap_pub blob not null,
  approved integer not null,
  expires integer not null
) strict, without rowid;
create index enroll_account on enroll (account, expires);
create index enroll_expires on enroll (expires);

create table bucket (
  k text primary key,
  tokens real not null,
  at integer not null
) strict, without rowid;
create index bucket_at on bucket (at);

create table lease (
  job text primary key,
  holder text not null,
  until integer not null
) strict, without rowid;

create table audit (
  id integer primary key,
  account blob,
  at integer not null,
  what text not null
) strict;
create index audit_at on audit (at);
create index audit_account on audit (account, id);

create table invite (
  hash blob primary key, -- SHA-256 of the code
  expires integer not null,
  used_at integer
) strict, without rowid;
create index invite_expires on invite (expires);
