"""The cloud as seen from a device: one typed method per route of `wire`, and every failure as one of our errors.

Knows HTTP and no key: what proves the device is a `sign` callable. Never follows a redirect, never speaks plain http
to another machine, and never takes more bytes than it asked for. Retrying is the caller's: errors say after how long.
"""
