-- Compactions are few among many events, and are looked for after every write.
create index event_compaction on event (session_id, n) where type = 'compaction';
