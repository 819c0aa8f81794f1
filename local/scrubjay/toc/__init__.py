"""The table of contents by time: segments of sessions, and the days, weeks, months and years that they add up to. Pure.

Theory of operation. A session is cut into segments, each of one project and one local day (`segmentation`). Of a
segment its outline is kept (`extraction`): which passages tell most of it, and its keywords. The outlines of a period
are those of its days, merged (`rollup`), for each project alone; what a caller sees of a period is put together from
those of the projects that it sees, when it asks (`periods` says what is in what). Passages are places in events, never
copies of their words.
"""

VERSION = 3
"""Raised when the same events would give another table: stores then make theirs again."""
