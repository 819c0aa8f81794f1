-- What a person is asked about a memory, or said of it, and why: 'waiting', 'disputed', 'accepted' or 'rejected', then the
-- reasons between spaces; null where nobody need look. A projection of register 18.
alter table memory add column review text;
create index memory_review on memory (review) where review is not null;
