"""`python -m scrubjay.cli`: the same command, where no script is installed."""

from __future__ import annotations

import sys

from scrubjay.cli import main

sys.exit(main())
