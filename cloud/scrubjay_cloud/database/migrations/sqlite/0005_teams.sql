-- Teams: scopes that several accounts share. `moved` rises with every push, so that a reader need not ask for each lane.

create table team (
  id blob primary key,
  founder blob not null,
  seq integer not null,
  head blob not null,
  moved integer not null default 0,
  bytes integer not null default 0,
  created integer not null
) strict, without rowid;
create index team_founder on team (founder);

create table team_log (
  team blob not null,
  seq integer not null,
  hash blob not null,
  entry blob not null,
  primary key (team, seq)
) strict, without rowid;

create table team_member (
  team blob not null,
  account blob not null,
  until_seq integer, -- the entry that took them out; null while they are in
  primary key (team, account)
) strict, without rowid;
create index team_member_account on team_member (account);

create table team_wrap (
  team blob not null,
  account blob not null,
  epoch integer not null,
  ct blob not null,
  primary key (team, account, epoch)
) strict, without rowid;
create index team_wrap_account on team_wrap (account);

create table team_card (
  account blob primary key,
  sign_pub blob not null,
  wrap_pub blob not null
) strict, without rowid;

create table team_lane (
  team blob not null,
  device blob not null,
  n integer not null,
  tip blob not null,
  primary key (team, device)
) strict, without rowid;

create table team_object (
  team blob not null,
  device blob not null,
  n integer not null,
  link blob not null,
  size integer not null,
  received integer not null,
  body blob not null
) strict;
create unique index team_object_place on team_object (team, device, n);
