"""How the raw value of a setting is read: a str from the environment, a TOML value from the file. Raises ValueError."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay.accounts import checked_name
from scrubjay_shared.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Callable

PATHS = "an absolute path, or one that begins with ~"

HTTP_PREFIX = "http:"
"""Before the name of a model that an embeddings server runs: `http:nomic-embed-text`."""

MAX_SOCKET_PATH_BYTES = 103  # sun_path is 104 bytes on macOS and 108 on Linux, the closing NUL included
MAX_NAME_CHARS = 200  # the longest name of a model that a server takes is below 100


def expanded(value: object) -> str:
    """Return a path with the home folder written out. Raises ValueError."""
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise ValueError(f"{value!r} is not a path")
    try:
        return str(Path(value).expanduser())
    except RuntimeError:
        raise ValueError(f"{str(value)!r} begins with the home folder of a user who does not exist") from None


def path(value: object) -> Path:
    """Read an absolute path. Raises ValueError."""
    found = Path(expanded(value))
    if not found.is_absolute():
        raise ValueError(f"{str(value)!r} is not an absolute path")
    return found


def socket(value: object) -> Path:
    """Read the path of a Unix socket. Raises ValueError."""
    found = path(value)
    if (length := len(os.fsencode(found))) > MAX_SOCKET_PATH_BYTES:
        raise ValueError(f"the path of a socket must have at most {MAX_SOCKET_PATH_BYTES} bytes, got {length}")
    return found


def whole(low: int, high: int) -> Callable[[object], int]:
    """Return what reads a whole number within bounds."""

    def read(value: object) -> int:
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value) if len(value) <= 9 else high + 1
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{value!r} is not a whole number")  # noqa: TRY004 one kind for every wrong value
        if not low <= value <= high:
            raise ValueError(f"{value} is not between {low} and {high}")
        return value

    return read


def one_of(allowed: tuple[str, ...]) -> Callable[[object], str]:
    """Return what reads one of some words, in whatever case."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value.lower() not in allowed:
            raise ValueError(f"{value!r} is not an allowed value")
        return value.lower()

    return read


def account(value: object) -> str:
    """Read the name of an account. Raises ValueError."""
    try:
        return checked_name(str(value))
    except InvalidError as error:
        raise ValueError(error.message) from error


def loopback(value: object) -> str:
    """Read an address of this machine. Raises ValueError."""
    # TLS is not offered, so nothing but this machine may be spoken to.
    if isinstance(value, str):
        parts = value.split(".")
        if value in {"localhost", "::1"}:
            return value
        if len(parts) == 4 and parts[0] == "127" and all(p.isascii() and p.isdigit() and int(p) < 256 for p in parts):
            return value
    raise ValueError(f"{value!r} is not a loopback address")


def model(value: object) -> str:
    """Read the name of an embedding model, here or on a server. Raises ValueError."""
    if (
        isinstance(value, str)
        and value.isprintable()
        and value.startswith(HTTP_PREFIX)
        and value[len(HTTP_PREFIX) :].strip()
    ):
        return value
    return local_model(value)


def local_model(value: object) -> str:
    """Read the name of a model in the models folder. Raises ValueError."""
    # A model's name becomes a folder's name, so it may hold nothing that leads out of the models folder.
    if (
        isinstance(value, str)
        and value[:1].isalnum()
        and all(c.isascii() and (c.isalnum() or c in "-_.") for c in value)
    ):
        return value
    raise ValueError(f"{value!r} is not a model's name")


def url(value: object) -> str:
    """Read the address of a server. Raises ValueError."""
    if not isinstance(value, str) or not value.startswith(("http://", "https://")) or not value.isprintable():
        raise ValueError(f"{value!r} is not a web address")
    if "@" in value:
        # The value itself stays out of the message: it holds a password.
        raise ValueError("the address holds a password, and settings are stored in a file in clear")
    return value.rstrip("/")


def private_url(value: object) -> str:
    """Read the address of a server that may be sent what was said: encrypted, unless it is this machine's own.

    Raises ValueError.
    """
    from urllib.parse import urlsplit  # noqa: PLC0415 every command loads this module, and few have such a setting

    found = url(value)
    try:
        parts = urlsplit(found)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.query or parts.fragment:
        raise ValueError("the value is not the web address of a server")
    if parts.scheme == "http" and not is_this_machine(host):
        raise ValueError(
            f"{host} is another machine, and http:// would send it what was said to your agents unencrypted"
            " (a tunnel that ends on this machine would do: ssh -L)"
        )
    return found


def is_this_machine(host: str) -> bool:
    """Say whether a host is this machine, whatever a network's names say."""
    from ipaddress import ip_address  # noqa: PLC0415 likewise

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def variable(value: object) -> str:
    """Read the name of an environment variable. Raises ValueError."""
    if not isinstance(value, str) or not value.isidentifier() or not value.isascii():
        # The value itself stays out of the message: a key pasted here by mistake must not reach a log.
        raise ValueError("the value is not the name of an environment variable")
    return value


def name(value: object) -> str:
    """Read the name that a server gives a model. Raises ValueError."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > MAX_NAME_CHARS:
        raise ValueError(f"{str(value)[:80]!r} is not a model's name")
    return value.strip()
