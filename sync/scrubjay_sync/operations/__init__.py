"""The operations of sync by area: each a function from a request of `scrubjay_sync.api` to a response.

The same operations run in the daemon, which holds the store, and in a command's own process when no daemon runs.
"""
