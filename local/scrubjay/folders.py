"""Where files belong by the rules of the platform, and the data folder of a command line, told without the settings.

Strings and `os.path` alone: loading what the settings need takes longer than starting the interpreter.
"""

from __future__ import annotations

import os
import sys

STORE_NAME = "memory.db"
"""The store of an account, in its folder."""

ACCOUNTS = "accounts"
"""The folder in the data folder that has one for each account but the main one."""

HOOK_DOOR_NAME = "hook_door"
"""The file of the data folder by which the daemon says how hooks reach it: a token of their own, the socket's path,
host, port and instance, a line each. It is written at every start with a new token, and is its owner's alone."""

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would slow every start
if TYPE_CHECKING:
    from collections.abc import Mapping


def xdg(variable: str, fallback: str, environ: Mapping[str, str]) -> str:
    """Return our folder below a base folder of the XDG specification, which ignores one that is not absolute."""
    named = environ.get(variable, "")
    base = named if named.startswith("/") else f"{environ.get('HOME') or os.path.expanduser('~')}/{fallback}"  # noqa: PTH111  # as the docstring says
    return f"{base}/scrubjay"


def data_folder(data_dir: str | None, home: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the data folder that the settings would name for these flags, None where only the settings can tell.

    That is where the config file may name it, where a path must be resolved or refused, and on other platforms.
    """
    base = environ.get("SCRUBJAY_HOME") if home is None else _absolute(home)
    named = environ.get("SCRUBJAY_DATA_DIR") if data_dir is None else data_dir and _absolute(data_dir)
    unresolved = any(path and not path.startswith("/") for path in (base, named))
    if sys.platform != "linux" or environ.get("SCRUBJAY_CONFIG") or unresolved or data_dir == "":
        return None
    if not named and _may_name(b"data_dir", base or xdg("XDG_CONFIG_HOME", ".config", environ)):
        return None
    return named or (f"{base}/data" if base else xdg("XDG_DATA_HOME", ".local/share", environ))


def _may_name(key: bytes, config: str) -> bool:
    try:
        with open(f"{config}/config.toml", "rb") as file:  # noqa: PTH123  # as the first lines say
            return key in file.read()
    except FileNotFoundError:
        return False
    except OSError:
        return True


def names_account(account: str | None, home: str | None, environ: Mapping[str, str]) -> bool:
    """Say whether a command line, the environment or the config file may name an account."""
    if account is not None or environ.get("SCRUBJAY_ACCOUNT") or environ.get("SCRUBJAY_CONFIG"):
        return True
    base = environ.get("SCRUBJAY_HOME") if home is None else _absolute(home)
    return _may_name(b"account", base or xdg("XDG_CONFIG_HOME", ".config", environ))


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111  # as above
