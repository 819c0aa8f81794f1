-- A device that another one shuts out is refused for a while, until the signed entry that revokes it follows or does not.
-- Who was refused so far and is not revoked in the log is let in again with the account's next entry.
alter table device add column refused_until bigint not null default 0;
-- Challenges that were answered: each is for one answer.
create table challenge (
  hash bytea primary key, -- SHA-256 of the nonce
  expires bigint not null
);
create index challenge_expires on challenge (expires);
