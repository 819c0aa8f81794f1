"""What help says of `scrubjay bench`, and where it is."""

from __future__ import annotations

from scrubjay.cli.extensions import Extension

BENCH = Extension("run the benchmarks", "scrubjay_bench.cli:command", "", "bench", "benchmarks.md")
