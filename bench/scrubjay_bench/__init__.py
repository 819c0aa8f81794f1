"""Benchmarks of scrubjay: what is measured, beside what it is compared with. Nothing imports this package."""
