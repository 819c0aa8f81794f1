"""`python -m scrubjay_bench`."""

import sys

from scrubjay_bench.cli import main

if __name__ == "__main__":
    sys.exit(main())
