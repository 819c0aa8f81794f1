"""The address of a server in its one form."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from scrubjay_shared.errors import (
    InvalidError,
)


def checked_origin(text: str) -> str:
    """Return an origin in its one form: scheme, host and, unless it is the usual one, port.

    Raises InvalidError for anything else, and for http to another machine.
    """
    parts = urlsplit(text.strip())
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme not in {"https", "http"} or not host or parts.path.strip("/") or parts.query or parts.username:
        raise InvalidError(
            "the server's address must be https://host or https://host:port", hint="without user name and path"
        )
    if parts.scheme == "http" and not _loopback(host):
        raise InvalidError(
            f"http without TLS is allowed to this machine only, and {host} is another one", hint=f"use https://{host}"
        )
    name = f"[{host}]" if ":" in host else host
    usual = {"https": 443, "http": 80}[parts.scheme]
    return f"{parts.scheme}://{name}" + (f":{port}" if port not in {None, usual} else "")


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
