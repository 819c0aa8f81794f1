"""Writes the report when all of it passed."""

from __future__ import annotations

import pytest

from agents_live import report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write what was found into the document, unless a test failed."""
    if exitstatus == 0 and session.testscollected:
        report.write(report.FOUND.runs)
