"""Real agents, installed from npm, offline against a stub model: run by `make agents-live`, not in the default run."""
