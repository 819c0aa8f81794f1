"""The operations of sync as data: the request and the response of each, by area. Ids are hex.

Passwords never stand in these records, only the keys derived from them; of recovery codes, only those that must open
something.
"""
