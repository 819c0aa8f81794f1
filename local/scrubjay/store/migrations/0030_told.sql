-- What the Writer called a stretch of a session that it read, for the table of contents. Of this device alone; it goes with
-- the first of these events whose words are erased.
create table toc_told (
  session_id text not null,
  place text not null,              -- of the first event that was read, as in toc_segment
  since text not null,              -- of the first that was shown beside these
  last text not null,               -- of the last
  title text not null,              -- '' where it gave none that counts
  summary text not null,
  crc integer,
  primary key (session_id, place)
) strict, without rowid;
