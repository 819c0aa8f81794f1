"""Where a device's secrets are kept: in the system's keychain, else in a file that only its owner may read.

Keychain programs that keep passwords in a plain file of their own are passed over, never used.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import keyring
import keyring.errors
import msgspec
from keyring.backends import chainer

from scrubjay_io import private_files
from scrubjay_shared.errors import CorruptError, DeniedError, InvalidError, UnavailableError
from scrubjay_sync.account.device_secrets import Secrets

VARIABLE = "SCRUBJAY_KEYCHAIN"
"""`file` keeps the secrets in a file even where there is a keychain: machines without a person."""
FILE_NAME = "sync.keys"
KEYRING_NAME = "sync.keyring"
SYSTEM = (
    "keyring.backends.SecretService",
    "keyring.backends.kwallet",
    "keyring.backends.libsecret",
    "keyring.backends.macOS",
    "keyring.backends.Windows",
)
"""The keychains that systems have. Others (keyrings.alt, fail, null) store nothing, or store plain files."""


class Backend(Protocol):
    """What we use of a keychain, as the `keyring` package offers it."""

    def get_password(self, service: str, username: str) -> str | None:
        """Return a secret, or None."""

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep a secret."""

    def delete_password(self, service: str, username: str) -> None:
        """Forget a secret."""


class Keychain:
    """The secrets of one data folder: a `secrets.Vault`."""

    def __init__(self, data_dir: Path, *, environ: Mapping[str, str], backend: Backend | None = None) -> None:
        """`backend` takes the place of the system's keychain. Raises InvalidError for an unknown SCRUBJAY_KEYCHAIN."""
        named = environ.get(VARIABLE, "")
        if named not in {"", "file"}:
            raise InvalidError(
                f"{VARIABLE} may be file or unset, got {named[:40]!r}", hint=f"unset it, or set {VARIABLE}=file"
            )
        self.path = data_dir / FILE_NAME
        self._keyring_path = data_dir / KEYRING_NAME
        # By the folder: two stores of one machine are two devices, also when one began as a copy of the other.
        self._slot = hashlib.sha256(os.fsencode(data_dir.resolve())).hexdigest()[:16]
        self._forced = environ.get(VARIABLE, "") == "file"
        self._given = backend

    @property
    def where(self) -> str:
        """Where secrets are kept, in words for a person."""
        if self._backend() is None:
            return f"the file {self.path}, which only you may read: this system offers no keychain we can trust"
        return "the system's keychain"

    async def load(self) -> Secrets | None:
        """Return what was saved last, or None. Raises DeniedError for a file that others may read, CorruptError."""
        return await asyncio.to_thread(self._load)

    async def save(self, secrets: Secrets) -> None:
        """Replace what is kept."""
        await asyncio.to_thread(self._save, secrets)

    async def keyring(self) -> bytes | None:
        """Return the sealed keyring that was kept last, or None."""
        return await asyncio.to_thread(_read, self._keyring_path)

    async def keep_keyring(self, data: bytes) -> None:
        """Replace the sealed keyring. It is not a secret: without the root key it opens nothing."""
        await asyncio.to_thread(private_files.write, self._keyring_path, data)

    async def erase(self) -> None:
        """Delete all of it. What a disk keeps of deleted files is beyond us."""
        await asyncio.to_thread(self._erase)

    def _load(self) -> Secrets | None:
        data = self._file()
        if data is None:
            backend = self._backend()
            found = None if backend is None else _secret_in(backend, self._slot)
            data = None if found is None else found.encode()
        if data is None:
            return None
        try:
            return msgspec.json.decode(data, type=Secrets)
        except msgspec.MsgspecError as error:
            raise CorruptError(
                "this device's keys are damaged", hint="scrubjay logout --force, then scrubjay login; all memories stay"
            ) from error

    def _save(self, secrets: Secrets) -> None:
        data = msgspec.json.encode(secrets)
        backend = None if self.path.exists() else self._backend()
        if backend is None:
            private_files.write(self.path, data)
            return
        try:
            backend.set_password(_SERVICE, self._slot, data.decode())
        except keyring.errors.KeyringError as error:
            raise UnavailableError(
                f"the system's keychain refused to store the keys ({type(error).__name__})",
                hint=f"unlock it, or set {VARIABLE}=file to use a file",
            ) from error

    def _erase(self) -> None:
        self.path.unlink(missing_ok=True)
        self._keyring_path.unlink(missing_ok=True)
        backend = self._backend()
        if backend is not None and _secret_in(backend, self._slot) is not None:
            try:
                backend.delete_password(_SERVICE, self._slot)
            except keyring.errors.KeyringError as error:
                raise UnavailableError(
                    "the system's keychain refused to delete the keys", hint="unlock it and try again"
                ) from error

    def _file(self) -> bytes | None:
        """Return the file's bytes, if it is there and nobody else's."""
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.st_mode):
            raise DeniedError(f"{self.path} is not a regular file", hint="move it away, then scrubjay login")
        if os.name == "posix" and (found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077):
            raise DeniedError(
                f"{self.path} can be read by other users of this machine",
                hint=f"chmod 600 {self.path}; if somebody may have read it, log out and in again",
            )
        return _read(self.path)

    def _backend(self) -> Backend | None:
        if self._forced:
            return None
        return self._given if self._given is not None else _system()


_SERVICE = "scrubjay"


def _system() -> Backend | None:
    """Return the system's keychain, or None when there is none that we can trust."""
    current = keyring.get_keyring()
    candidates = current.backends if isinstance(current, chainer.ChainerBackend) else [current]
    return next((one for one in candidates if type(one).__module__ in SYSTEM), None)


def _secret_in(backend: Backend, slot: str) -> str | None:
    try:
        return backend.get_password(_SERVICE, slot)
    except keyring.errors.KeyringError as error:
        raise UnavailableError(
            f"the system's keychain did not answer ({type(error).__name__})", hint="unlock it and try again"
        ) from error


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnavailableError(f"{path} cannot be read: {error.strerror}", hint="check its permissions") from error
