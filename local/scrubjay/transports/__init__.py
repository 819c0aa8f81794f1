"""The ways to the operations of a store: this process, the daemon as a client sees it, HTTP as the daemon serves it."""
