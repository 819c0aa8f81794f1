"""How the service is set up: flags > environment > defaults. Reads no file."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import platformdirs

from scrubjay_cloud.policy import DEFAULT
from scrubjay_shared.errors import InvalidError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Registration = Literal["invite", "open"]

DATABASE_NAME = "server.db"
MAX_WORKERS = 64
"""More cores than one machine for this has; each worker has a pool of connections to PostgreSQL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One installation's settings, checked.

    `database_url` empty means SQLite in `data`; `listen_url` is PostgreSQL's own address where that is a pooler's.
    `origin` is the address clients use (`https://sync.example.org`), without a slash at its end; empty on a loopback
    test server. `proxies` are the networks whose X-Forwarded-For is believed. `replica` is litestream's target, empty
    for none. `pepper` is a secret outside the database, without which a stolen one cannot even be searched for
    passwords; all instances share it. `workers` are processes that serve the port together, which needs PostgreSQL.
    `bodies` is the bucket and folder in which the bodies of large sealed objects stand, `s3://bucket/folder`; empty
    means the database. `bodies_endpoint` is its address where it is not AWS's.
    """

    data: Path
    database_url: str = field(default="", repr=False)
    listen_url: str = field(default="", repr=False)
    host: str = "127.0.0.1"
    port: int = 8377
    workers: int = 1
    metrics_port: int = 9377
    origin: str = ""
    registration: Registration = "invite"
    proxies: tuple[Network, ...] = ()
    replica: str = ""
    backup_folder: Path | None = None
    quota_bytes: int = DEFAULT.quota_bytes
    pepper: str = field(default="", repr=False)
    tls_cert: Path | None = None
    tls_key: Path | None = None
    bodies: str = ""
    bodies_endpoint: str = ""
    bodies_region: str = "us-east-1"
    bodies_access_key_id: str = field(default="", repr=False)
    bodies_secret_access_key: str = field(default="", repr=False)

    @property
    def database_path(self) -> Path:
        """The SQLite file."""
        return self.data / DATABASE_NAME

    @property
    def backups(self) -> Path:
        """The folder of independent backups: best on another disk."""
        return self.backup_folder or self.data / "backups"

    @property
    def secure(self) -> bool:
        """Whether clients reach it over TLS."""
        return self.origin.startswith("https://") or self.tls_cert is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One setting: its field, its environment variable, what it means, and how its text is read."""

    key: str
    variable: str
    meaning: str
    read: Callable[[str], Any]


def load(flags: Mapping[str, str | None] | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings in force. Keys of `flags` are those of `OPTIONS`; None means not given, "" in the
    environment too. Raises InvalidError, naming the variable or flag and what is allowed.
    """  # noqa: D205 - one thought
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    if unknown := given.keys() - {option.key for option in OPTIONS}:
        raise InvalidError(f"no setting is called {min(unknown)}", hint=", ".join(option.key for option in OPTIONS))
    chosen: dict[str, Any] = {}
    for option in OPTIONS:
        if option.key in given:
            chosen[option.key] = _read(option, given[option.key], "--" + option.key.replace("_", "-"))
        elif text := (environ or {}).get(option.variable):
            chosen[option.key] = _read(option, text, option.variable)
    settings = Settings(**{"data": default_data()} | chosen)
    _check(settings)
    return settings


def default_data() -> Path:
    """Return the data folder of a service that was given none: where programs of this user keep their data."""
    return platformdirs.user_data_path("scrubjay-cloud", appauthor=False)


def _check(settings: Settings) -> None:
    _check_bodies(settings)
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise InvalidError(
            "TLS needs both a certificate and its key, and one is missing",
            hint="give --tls-cert and --tls-key, or neither",
        )
    loopback = _is_loopback(settings.host)
    behind_proxy = settings.origin.startswith("https://") and bool(settings.proxies)
    if not loopback and settings.tls_cert is None and not behind_proxy:
        raise InvalidError(
            f"{settings.host} is not a loopback address, and nothing says that TLS stands in front of it",
            hint="set SCRUBJAY_CLOUD_ORIGIN to the https address and SCRUBJAY_CLOUD_PROXIES to the proxy's network, "
            "or give --tls-cert and --tls-key",
        )
    if settings.origin.startswith("http://") and not _is_loopback(urlsplit(settings.origin).hostname or ""):
        raise InvalidError(
            f"the origin must be https, got {settings.origin}", hint="only a loopback address may go without TLS"
        )


def _check_bodies(settings: Settings) -> None:
    if not settings.bodies:
        return
    if not settings.database_url:
        raise InvalidError(
            "a store of bodies needs PostgreSQL: on SQLite the one file holds everything, and litestream copies it",
            hint="set DATABASE_URL too, or leave SCRUBJAY_CLOUD_BODIES out",
        )
    if not (settings.bodies_access_key_id and settings.bodies_secret_access_key):
        raise InvalidError(
            "a store of bodies needs an access key, and its id or its secret is missing",
            hint="set SCRUBJAY_CLOUD_BODIES_ACCESS_KEY_ID and SCRUBJAY_CLOUD_BODIES_SECRET_ACCESS_KEY",
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read(option: Option, text: str, source: str) -> Any:
    try:
        return option.read(text)
    except ValueError as error:
        raise InvalidError(
            f"{source} ({option.meaning}) is not valid: {error}", hint="scrubjay-cloud serve --help"
        ) from error


def _path(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65_535:
        raise ValueError(f"a port is from 0 to 65535, got {port}")
    return port


def _origin(text: str) -> str:
    parts = urlsplit(text.rstrip("/"))
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path or parts.query or parts.fragment:
        raise ValueError("it must look like https://sync.example.org")
    if parts.username or parts.password:
        raise ValueError("it must not contain a user name or password")
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _registration(text: str) -> str:
    if text not in {"invite", "open"}:
        raise ValueError(f"it must be invite or open, got {text[:40]!r}")
    return text


def _proxies(text: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip())


def _workers(text: str) -> int:
    number = int(text)
    if not 1 <= number <= MAX_WORKERS:
        raise ValueError(f"it must be from 1 to {MAX_WORKERS}, got {number}")
    return number


def _bytes(text: str) -> int:
    number = int(text)
    if number <= 0:
        raise ValueError(f"it must be above 0, got {number}")
    return number


def _database(text: str) -> str:
    if not text.startswith(("postgres://", "postgresql://")):
        raise ValueError("it must begin with postgres://; without it, SQLite in the data folder is used")
    return text


def _bucket(text: str) -> str:
    if not re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._-]+)*", text):
        raise ValueError("it must look like s3://bucket or s3://bucket/folder")
    return text


def _endpoint(text: str) -> str:
    parts = urlsplit(text.rstrip("/"))
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("it must look like https://s3.example.org")
    if parts.username or parts.password:
        raise ValueError("it must not contain a user name or password")
    return text.rstrip("/")


OPTIONS: tuple[Option, ...] = (
    Option(
        key="data",
        variable="SCRUBJAY_CLOUD_DATA",
        meaning="the data folder; unless given, scrubjay-cloud in the user's own",
        read=_path,
    ),
    Option(key="database_url", variable="DATABASE_URL", meaning="PostgreSQL instead of SQLite", read=_database),
    Option(
        key="listen_url",
        variable="SCRUBJAY_CLOUD_LISTEN_URL",
        meaning="PostgreSQL's own address, for LISTEN, where DATABASE_URL is that of a transaction pooler",
        read=_database,
    ),
    Option(key="host", variable="SCRUBJAY_CLOUD_HOST", meaning="the address to listen on", read=str),
    Option(key="port", variable="SCRUBJAY_CLOUD_PORT", meaning="the port to listen on", read=_port),
    Option(
        key="workers",
        variable="SCRUBJAY_CLOUD_WORKERS",
        meaning="processes that serve the port together, with PostgreSQL; 1 unless given",
        read=_workers,
    ),
    Option(key="metrics_port", variable="SCRUBJAY_CLOUD_METRICS_PORT", meaning="the port of /metrics", read=_port),
    Option(key="origin", variable="SCRUBJAY_CLOUD_ORIGIN", meaning="the address clients use", read=_origin),
    Option(
        key="registration",
        variable="SCRUBJAY_CLOUD_REGISTRATION",
        meaning="who may sign up: invite or open",
        read=_registration,
    ),
    Option(
        key="proxies",
        variable="SCRUBJAY_CLOUD_PROXIES",
        meaning="networks of trusted proxies, separated by commas",
        read=_proxies,
    ),
    Option(key="replica", variable="SCRUBJAY_CLOUD_REPLICA", meaning="where litestream copies the database", read=str),
    Option(
        key="backup_folder",
        variable="SCRUBJAY_CLOUD_BACKUPS",
        meaning="the folder for backups; `backups` in the data folder unless given",
        read=_path,
    ),
    Option(key="quota_bytes", variable="SCRUBJAY_CLOUD_QUOTA_BYTES", meaning="bytes an account may hold", read=_bytes),
    Option(key="pepper", variable="SCRUBJAY_CLOUD_PEPPER", meaning="a secret mixed into password hashes", read=str),
    Option(key="tls_cert", variable="SCRUBJAY_CLOUD_TLS_CERT", meaning="certificate chain, PEM", read=_path),
    Option(key="tls_key", variable="SCRUBJAY_CLOUD_TLS_KEY", meaning="private key, PEM", read=_path),
    Option(
        key="bodies",
        variable="SCRUBJAY_CLOUD_BODIES",
        meaning="s3://bucket/folder for the bodies of large objects, with PostgreSQL",
        read=_bucket,
    ),
    Option(
        key="bodies_endpoint",
        variable="SCRUBJAY_CLOUD_BODIES_ENDPOINT",
        meaning="that store's address, where it is not AWS",
        read=_endpoint,
    ),
    Option(key="bodies_region", variable="SCRUBJAY_CLOUD_BODIES_REGION", meaning="that store's region", read=str),
    Option(
        key="bodies_access_key_id",
        variable="SCRUBJAY_CLOUD_BODIES_ACCESS_KEY_ID",
        meaning="id of the access key to that store",
        read=str,
    ),
    Option(
        key="bodies_secret_access_key",
        variable="SCRUBJAY_CLOUD_BODIES_SECRET_ACCESS_KEY",
        meaning="the access key's secret",
        read=str,
    ),
)
