"""Compaction: the beginning of a session becomes an archive, and a marker says from where on its history is replayed.

Pure. `markers` says which events a marker and its archive stand for, `extract` what an archive quotes, `requests` which
of the events that hosts send ask for one.
"""
