-- Nothing asked the inverted index over events: recall searches its own postings in memory, and makes the tokens of an
-- event's text again when it is opened without a saved copy of these. The pages are overwritten (`secure_delete`).
drop table event_fts;
