"""Effects that the local daemon, sync and the cloud service all need; `scrubjay_shared` holds what is pure."""
