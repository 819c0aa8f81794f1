"""What help says of the commands of sync, and where they are. Imports no library of the extra `sync`."""

from __future__ import annotations

from scrubjay.cli.extensions import Extension


def _command(summary: str) -> Extension:
    return Extension(summary, "scrubjay_sync.cli:main", "scrubjay_sync.cli:parser_of", "sync", "sync-cli.md")


LOGIN = _command("sign up for sync, or log in")
LOGOUT = _command("stop syncing; the memories stay")
SYNC = _command("sync now, watch, verify, inspect")
DEVICES = _command("list, approve, revoke devices")
TEAMS = _command("share memories with other people")
RECOVERY = _command("the recovery code")
ACCOUNT = _command("password, second factor, deletion")
