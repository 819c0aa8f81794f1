-- Times are UTC milliseconds; flags are 0 or 1; ids, hashes and objects are bytea.

create table meta (
  k text primary key,
  v text not null
);

create table account (
  id bytea primary key,
  name text not null unique, -- the user name, folded: what a login is looked up by
  auth_method bigint not null, -- 1: a derived key, hashed with Argon2id
  kdf bytea not null, -- how the client derives its key, MessagePack
  auth_hash bytea not null,
  auth_salt bytea not null,
  totp bytea, -- the second factor's secret; null without one
  totp_step bigint not null default 0, -- the last time step that was used: a code works once
  log_seq bigint not null,
  log_head bytea not null,
  keyring bytea, -- hash of the keyring in force
  gseq bigint not null default 0,
  bytes bigint not null default 0,
  objects bigint not null default 0,
  superseded bigint not null default 0, -- bytes that packs stand in place of, until they are deleted
  quota bigint, -- null: the server's default
  status bigint not null default 0, -- 0 in force, 1 locked by the operator
  created bigint not null
);

create table account_log (
  account bytea not null,
  seq bigint not null,
  hash bytea not null,
  entry bytea not null,
  primary key (account, seq)
);

create table device (
  account bytea not null,
  id bytea not null,
  sign_pub bytea not null,
  hpke_pub bytea not null,
  limited bigint not null,
  revoked_at bigint,
  last_seen bigint not null,
  primary key (account, id)
);
create index device_id on device (id);

create table token (
  hash bytea primary key, -- SHA-256 of the token
  account bytea not null,
  device bytea, -- null for a pending one
  kind bigint not null, -- 1 pending, 2 device
  expires bigint not null
);
create index token_account on token (account, device, expires);
create index token_expires on token (expires);

create table wrap (
  account bytea not null,
  target bytea not null,
  kind bigint not null,
  version bigint not null,
  ct bytea not null,
  primary key (account, target, kind, version)
);

create table lane (
  account bytea not null,
  scope bytea not null,
  device bytea not null,
  n bigint not null,
  tip bytea not null,
  primary key (account, scope, device)
);

create table object (
  account bytea not null,
  gseq bigint not null,
  scope bytea not null,
  device bytea not null,
  kind bigint not null,
  n_from bigint not null,
  n_to bigint not null,
  hash bytea not null, -- the object's link
  tip bytea not null, -- what the next object's prev must be
  size bigint not null,
  received bigint not null,
  superseded_at bigint, -- a pack stands in its place since then
  body bytea not null
) partition by hash (account);
-- Ciphertext does not compress; without the attempt a page of it is read a third faster.
alter table object alter column body set storage external;
create table object_00 partition of object for values with (modulus 16, remainder 0);
create table object_01 partition of object for values with (modulus 16, remainder 1);
create table object_02 partition of object for values with (modulus 16, remainder 2);
create table object_03 partition of object for values with (modulus 16, remainder 3);
create table object_04 partition of object for values with (modulus 16, remainder 4);
create table object_05 partition of object for values with (modulus 16, remainder 5);
create table object_06 partition of object for values with (modulus 16, remainder 6);
create table object_07 partition of object for values with (modulus 16, remainder 7);
create table object_08 partition of object for values with (modulus 16, remainder 8);
create table object_09 partition of object for values with (modulus 16, remainder 9);
create table object_10 partition of object for values with (modulus 16, remainder 10);
create table object_11 partition of object for values with (modulus 16, remainder 11);
create table object_12 partition of object for values with (modulus 16, remainder 12);
create table object_13 partition of object for values with (modulus 16, remainder 13);
create table object_14 partition of object for values with (modulus 16, remainder 14);
create table object_15 partition of object for values with (modulus 16, remainder 15);
create unique index object_g on object (account, gseq) where superseded_at is null;
create unique index object_l on object (account, scope, device, n_from) where superseded_at is null;
create index object_old on object (account, scope, device, n_from) where superseded_at is not null;
create index object_superseded on object (superseded_at) where superseded_at is not null;

create table blob (
  account bytea not null,
  hash bytea not null, -- SHA-256 of the whole object
  scope bytea not null,
  kind bigint not null,
  size bigint not null,
  received bigint not null,
  replaced_at bigint, -- a keyring that is not in force any more
  body bytea not null,
  primary key (account, hash)
);
create index blob_replaced on blob (replaced_at) where replaced_at is not null;

create table enroll (
  id bytea primary key,
  account bytea not null,
  device bytea not null,
  sign_pub bytea not null,
  wrap_pub bytea not null,
  approved bigint not null,
  expires bigint not null
);
create index enroll_account on enroll (account, expires);
create index enroll_expires on enroll (expires);

create table bucket (
  k text primary key,
  tokens double precision not null,
  at bigint not null
);
create index bucket_at on bucket (at);

create table lease (
  job text primary key,
  holder text not null,
  until bigint not null
);

create table audit (
  id bigint generated always as identity primary key,
  account bytea,
  at bigint not null,
  what text not null
);
create index audit_at on audit (at);
create index audit_account on audit (account, id);

create table invite (
  hash bytea primary key, -- SHA-256 of the code
  expires bigint not null,
  used_at bigint
);
create index invite_expires on invite (expires);
