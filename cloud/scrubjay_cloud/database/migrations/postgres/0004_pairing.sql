-- Pairing commits before it reveals: what a machine that asks is bound to, the nonce and the log's end of the device that
-- answers, and the nonce that was committed to. Requests from before are void; they end after a quarter of an hour anyway.
delete from enroll;
alter table enroll add column commitment bytea not null default '';
alter table enroll add column answer bytea not null default '';
alter table enroll add column answer_head bytea not null default '';
alter table enroll add column reveal bytea not null default '';
