-- What the account log adds up to after an entry, so that a start of the program does not replay the log.
create table account_state (
  seq integer primary key, -- of that entry
  state blob not null,
  crc integer
) strict;
