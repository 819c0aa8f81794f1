"""Accounts: signing up, proving a password, the account log, and leaving. A password opens no data here."""

from __future__ import annotations

from scrubjay_cloud.accounts.endpoints import ENDPOINTS

__all__ = ["ENDPOINTS"]
