"""Plain files of agents' memories: kept in step with the store, written to, and asked."""
