-- Names that accounts had before: kept from everybody else for a while, so that nobody takes the place of who gave one up.
create table former_name (
  name text primary key, -- folded, as account.name
  account blob not null,
  expires integer not null
) strict, without rowid;
create index former_name_account on former_name (account);
create index former_name_expires on former_name (expires);
