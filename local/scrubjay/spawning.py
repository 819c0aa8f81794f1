"""The one thing that every process we start has in common: on Windows, it opens no window.

A daemon in the background has no console, and Windows opens one for each child that wants one.
"""

from __future__ import annotations

import sys

NO_WINDOW = 0x0800_0000 if sys.platform == "win32" else 0
"""`creationflags` of every process that we start (CREATE_NO_WINDOW); elsewhere there are none, and 0 says so."""
