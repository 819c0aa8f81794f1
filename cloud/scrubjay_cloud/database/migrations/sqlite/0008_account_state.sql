-- What an account's log adds up to, so that no log is replayed for each process that meets the account: the newest state,
-- and those that checkpoint entries state. `seq` is the entry after which the account is so, `head` its hash.
create table account_state (
  account blob not null,
  seq integer not null,
  head blob not null,
  state blob not null,
  primary key (account, seq)
) strict, without rowid;
