-- A check sum in every row that nothing else in the file says again (`seals.py` computes them and fills these). Whatever
-- is not here is derived, and checked by deriving it once more.
alter table event add column crc integer;
alter table op add column crc integer;
alter table embedding add column crc integer;
alter table space add column crc integer;
alter table access add column crc integer;
alter table learned add column crc integer;
alter table unlearned add column crc integer;
alter table job add column crc integer;
alter table meta add column crc integer;
alter table parked add column crc integer;
alter table heard add column crc integer;
alter table sync_state add column crc integer;
alter table lane add column crc integer;
alter table sealed add column crc integer;
alter table link add column crc integer;
alter table part add column crc integer;
alter table placed add column crc integer;
alter table bound add column crc integer;
alter table account_log add column crc integer;
alter table seen add column crc integer;
alter table alarm add column crc integer;
alter table erased add column crc integer;
alter table refused add column crc integer;
alter table embed_queue add column crc integer;

-- As before, but for the check sum, which is written after the row; and for a device that used one id twice: of its two
-- events the same one must count wherever they arrive in another order, so a row may be that of another op (`seq`).
drop trigger event_is_immutable;
create trigger event_is_immutable before update of n, id, device, agent, session_id, project, ts, utc_offset, type, role,
  text, metadata, dedupe_key, trust, erased, seq, forgotten on event
when new.id <> old.id or new.n <> old.n or (new.device = old.device and new.seq = old.seq and (new.erased <= old.erased
  or new.ts <> old.ts or new.session_id <> old.session_id or new.dedupe_key <> old.dedupe_key))
begin
  select raise(abort, 'events are append-only; forget is the only way to erase one');
end;
