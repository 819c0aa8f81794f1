"""Sets the clock of the Python programs that an agent starts back by a day: its hooks then say that this was yesterday."""

import time

DAY_NS = 86_400 * 10**9
_time_ns = time.time_ns
time.time_ns = lambda: _time_ns() - DAY_NS
