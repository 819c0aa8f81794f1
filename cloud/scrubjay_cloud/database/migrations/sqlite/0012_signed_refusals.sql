-- Signed refusals of devices, one for each target and author: none is renewed, and all go with the entry that revokes either.
create table refusal (
  account blob not null,
  target blob not null, -- the device that is refused
  author blob not null, -- the device that signed it
  nonce blob not null, -- the challenge that was signed
  until integer not null, -- by the server's clock; the row stays after it
  signature blob not null,
  primary key (account, target, author)
) strict, without rowid;
-- What was refused without a signature is let in again.
update device set refused_until = 0;
-- Networks from which an account's own devices and right passwords came, as keyed hashes.
create table known_network (
  account blob not null,
  network blob not null,
  seen integer not null,
  primary key (account, network)
) strict, without rowid;
create index known_network_seen on known_network (seen);
