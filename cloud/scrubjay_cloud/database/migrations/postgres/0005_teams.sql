-- Teams: scopes that several accounts share. `moved` rises with every push, so that a reader need not ask for each lane.

create table team (
  id bytea primary key,
  founder bytea not null,
  seq bigint not null,
  head bytea not null,
  moved bigint not null default 0,
  bytes bigint not null default 0,
  created bigint not null
);
create index team_founder on team (founder);

create table team_log (
  team bytea not null,
  seq bigint not null,
  hash bytea not null,
  entry bytea not null,
  primary key (team, seq)
);

create table team_member (
  team bytea not null,
  account bytea not null,
  until_seq bigint, -- the entry that took them out; null while they are in
  primary key (team, account)
);
create index team_member_account on team_member (account);

create table team_wrap (
  team bytea not null,
  account bytea not null,
  epoch bigint not null,
  ct bytea not null,
  primary key (team, account, epoch)
);
create index team_wrap_account on team_wrap (account);

create table team_card (
  account bytea primary key,
  sign_pub bytea not null,
  wrap_pub bytea not null
);

create table team_lane (
  team bytea not null,
  device bytea not null,
  n bigint not null,
  tip bytea not null,
  primary key (team, device)
);

create table team_object (
  team bytea not null,
  device bytea not null,
  n bigint not null,
  link bytea not null,
  size bigint not null,
  received bigint not null,
  body bytea not null
);
create unique index team_object_place on team_object (team, device, n);
