"""`python -m scrubjay_hook`, as `scrubjay-hook`."""

from scrubjay_hook import main

main()
