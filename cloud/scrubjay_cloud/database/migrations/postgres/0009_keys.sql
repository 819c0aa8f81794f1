-- Keys contain the account: an engine that spreads rows over machines by account asks that of every unique key.
alter table token drop constraint token_pkey;
alter table token add primary key (account, hash);
create index token_hash on token (hash);
alter table enroll drop constraint enroll_pkey;
alter table enroll add primary key (account, id);
create index enroll_id on enroll (id);
delete from audit where account is null;
alter table audit alter column account set not null;
alter table audit drop constraint audit_pkey;
alter table audit add primary key (account, id);
drop index audit_account;
