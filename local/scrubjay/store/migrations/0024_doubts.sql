-- Memories that may take the place of others are few; recall asks for these at each question, to mark what may be outdated.
create index memory_doubt on memory (id) where instr(metadata, '"may_supersede"') > 0;
