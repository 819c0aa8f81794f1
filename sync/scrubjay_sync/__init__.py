"""The encrypted sync client: keys, sealed lanes, the rounds that replicate a store. Opt-in; local never imports it."""
