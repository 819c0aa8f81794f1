-- Pairing commits before it reveals: what a machine that asks is bound to, the nonce and the log's end of the device that
-- answers, and the nonce that was committed to. Requests from before are void; they end after a quarter of an hour anyway.
delete from enroll;
alter table enroll add column commitment blob not null default x'';
alter table enroll add column answer blob not null default x'';
alter table enroll add column answer_head blob not null default x'';
alter table enroll add column reveal blob not null default x'';
