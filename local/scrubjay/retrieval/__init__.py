"""From a question to its hits: candidates, scores, filters, and what fits into a budget of tokens."""
