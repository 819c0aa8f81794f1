-- Bodies may stand in a store beside the database: then `body` holds the object's header alone, and `body_key` names it.
alter table object add column body_key text;
alter table blob add column body_key text;

create table loose_body ( -- keys in the store that no row names: of uploads under way, and of rows that were deleted
  account bytea not null,
  body_key text not null,
  due bigint not null, -- from when on it is deleted
  marked bigint not null, -- 1: it is being deleted, and no row may take it any more
  primary key (account, body_key)
);
create index loose_body_due on loose_body (due);
