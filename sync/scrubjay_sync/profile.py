"""Where this store is logged in: the part of a login that is not a secret, in `sync.json` beside the store.

Its absence means that sync is off; nothing of this package is loaded then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from scrubjay.accounts import MAIN
from scrubjay_io import private_files
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import CorruptError, NotFoundError, UnavailableError
from scrubjay_shared.wire import Kdf

PROFILE_NAME = "sync.json"
LOGIN_HINT = "scrubjay login signs up or logs in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One login. `account` is 16 bytes; `origin` is the server's address as `cloud.checked_origin` writes it.

    `kdf` are the parameters that the password was last derived with: later ones may not be weaker; None for a device
    that never saw a password. `recovery_checked` is when the recovery code was last typed in (UTC milliseconds).
    `quiet` sends in quarters of an hour only, so that the server learns less of when somebody works.
    """

    origin: str
    account: bytes
    username: str
    device_name: str
    kdf: Kdf | None = None
    recovery_checked: Millis | None = None
    quiet: bool = False


def path_in(data_dir: Path) -> Path:
    """Return where the profile of a data folder is."""
    return data_dir / PROFILE_NAME


def load(data_dir: Path) -> Profile | None:
    """Return the login of a data folder, or None when sync is off. Raises CorruptError, UnavailableError."""
    path = path_in(data_dir)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnavailableError(
            f"{path} cannot be read: {error.strerror}", hint="check who owns it, and its permissions"
        ) from error
    try:
        return msgspec.json.decode(data, type=Profile)
    except msgspec.MsgspecError as error:
        raise CorruptError(
            f"{path} is damaged: it does not say where this machine is logged in",
            hint="move it away, then scrubjay login",
        ) from error


def required(data_dir: Path, account: str = MAIN) -> Profile:
    """Return the login of a data folder. Raises NotFoundError when there is none, else as `load`.

    `account` is the name by which the home knows the account that the folder is of.
    """
    found = load(data_dir)
    if found is None:
        raise not_logged_in(account)
    return found


def not_logged_in(account: str) -> NotFoundError:
    """Return what is said where an account has no login."""
    if account == MAIN:
        return NotFoundError("this machine is not logged in: sync is off", hint=LOGIN_HINT)
    return NotFoundError(
        f"the account {account} is not logged in: what it has stays here",
        hint=f"scrubjay login --account {account} signs up or logs in",
    )


def save(data_dir: Path, profile: Profile) -> None:
    """Keep a login, whole or not at all. Raises UnavailableError."""
    private_files.write(path_in(data_dir), msgspec.json.format(msgspec.json.encode(profile), indent=2))


def erase(data_dir: Path) -> None:
    """Forget the login: sync is off. A second call does nothing."""
    path_in(data_dir).unlink(missing_ok=True)


def checked_recovery(profile: Profile, at: Millis) -> Profile:
    """Return the profile of somebody who has just shown that the recovery code is in their hands."""
    return replace(profile, recovery_checked=at)
