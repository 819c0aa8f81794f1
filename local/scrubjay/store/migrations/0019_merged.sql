-- Memories that were merged into another, or compressed into an archive, are looked up by the one that holds them now.
create index memory_successor on memory (superseded_by) where superseded_by is not null;
