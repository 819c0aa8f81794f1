-- The ledger of the Writer's calls: what each cost, and what it was for. Never a word of prompt or answer.
create table writer_call (
  n integer primary key,
  at integer not null,              -- UTC ms, when it was reserved
  day text not null,                -- the civil day then, where the machine was: caps are by days and months
  job text not null,
  writer text not null,             -- the setting's value: openai, anthropic, claude, ...
  model text not null,
  input integer not null,           -- tokens; until it is settled the most that it can cost
  output integer not null,
  estimated integer not null,       -- 1 where the tokens are an upper bound, not all of them counted by the Writer
  outcome text not null,            -- open, done, or how it failed
  ms integer,                       -- how long it took
  crc integer
) strict;
create index writer_call_day on writer_call (day);
