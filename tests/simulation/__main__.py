"""`python -m simulation`: play many histories on all cores, check every law, and write down how it went."""

from __future__ import annotations

import sys

from simulation.report import main

sys.exit(main(sys.argv[1:]))
