"""The routes of an account: signing up, logging in, enrolment, password, deletion."""

from __future__ import annotations

from scrubjay_shared import wire
from scrubjay_sync.cloud.connection import Auth, Connection


class AccountRoutes:
    """One method for each route that changes an account or who is in it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def prelogin(self, username: str) -> wire.Prelogin:
        """Return how a name derives its key."""
        return await self._connection.json(
            "GET", "/v1/prelogin", wire.Prelogin, auth=None, params={"username": username}
        )

    async def check_sign_up(self, request: wire.CheckSignUp) -> None:
        """Ask whether a name is free and an invitation valid. Raises ConflictError, DeniedError; NotFoundError where
        the server is older than the question.
        """  # noqa: D205 - one thought
        await self._connection.send("POST", "/v1/register/check", body=request, auth=None)

    async def register(self, account: wire.Register) -> None:
        """Make a new account."""
        await self._connection.send("POST", "/v1/register", body=account, auth=None)

    async def challenge(self, device: bytes) -> wire.Challenge:
        """Return a nonce to sign, once and soon; 16 zeros for the recovery code."""
        return await self._connection.json(
            "GET", "/v1/auth/challenge", wire.Challenge, auth=None, params={"device": device.hex()}
        )

    async def login(self, login: wire.Login) -> wire.Pending:
        """Prove a password; the token that comes back may enrol a device and read the account log."""
        return await self._connection.json("POST", "/v1/login", wire.Pending, body=login, auth=None)

    async def enroll(self, device: wire.Enroll, *, pending: str) -> wire.Enrolment:
        """Ask to be added, with the token of a login."""
        return await self._connection.json("POST", "/v1/enroll", wire.Enrolment, body=device, auth=pending)

    async def enrolments(self, *, pending: str | None = None) -> wire.Enrolments:
        """Return the devices that ask: all of them to a device, its own to the one with a pending token."""
        return await self._connection.json("GET", "/v1/enroll", wire.Enrolments, auth=pending or Auth.DEVICE)

    async def answer(self, enrolment: bytes, answer: wire.PairingAnswer) -> wire.Enrolment:
        """Answer a machine that asks. Raises ConflictError when it has another answer already."""
        return await self._connection.json(
            "POST", f"/v1/enroll/{enrolment.hex()}/answer", wire.Enrolment, body=answer, auth=Auth.DEVICE
        )

    async def reveal(self, enrolment: bytes, reveal: wire.PairingReveal, *, pending: str) -> wire.Enrolment:
        """Reveal what one's request has committed to, once it is answered."""
        return await self._connection.json(
            "POST", f"/v1/enroll/{enrolment.hex()}/reveal", wire.Enrolment, body=reveal, auth=pending
        )

    async def approve(self, enrolment: bytes) -> wire.Enrolment:
        """Note that the device of an enrolment was added to the account log."""
        return await self._connection.json(
            "POST", f"/v1/enroll/{enrolment.hex()}/approve", wire.Enrolment, auth=Auth.DEVICE
        )

    async def usage(self) -> wire.Usage:
        """Return bytes and objects held, and what is allowed."""
        return await self._connection.json("GET", "/v1/usage", wire.Usage, auth=Auth.DEVICE)

    async def set_password(self, change: wire.SetPassword) -> None:
        """Change the password."""
        await self._connection.send("PUT", "/v1/account/password", body=change, auth=Auth.DEVICE)

    async def set_name(self, change: wire.SetName) -> wire.AccountName:
        """Change the user name. Raises ConflictError when it is somebody else's."""
        return await self._connection.json("PUT", "/v1/account/name", wire.AccountName, body=change, auth=Auth.DEVICE)

    async def set_totp(self, change: wire.SetTotp) -> None:
        """Set or take away the second factor."""
        await self._connection.send("PUT", "/v1/account/totp", body=change, auth=Auth.DEVICE)

    async def delete_account(self, proof: wire.DeleteAccount) -> wire.Deleted:
        """Delete the account and everything of it."""
        return await self._connection.json("DELETE", "/v1/account", wire.Deleted, body=proof, auth=Auth.DEVICE)

    async def delete_scope(self, scope: bytes) -> wire.Deleted:
        """Delete every object of a scope."""
        return await self._connection.json("DELETE", f"/v1/scopes/{scope.hex()}", wire.Deleted, auth=Auth.DEVICE)

    async def delete_device(self, device: bytes) -> None:
        """Have a device refused for a while, signed by this one; what ends its right to write for good is the log.

        Raises ConflictError when this device did so before, and no entry of the log followed.
        """
        who = self._connection.credential
        nonce = (await self.challenge(who.device)).nonce
        signature = who.sign(wire.refusal_message(who.account, device, who.device, nonce))
        request = wire.RefuseDevice(nonce=nonce, signature=signature)
        await self._connection.send("DELETE", f"/v1/devices/{device.hex()}", body=request, auth=Auth.DEVICE)

    async def refusals(self) -> wire.Refusals:
        """Return which devices were refused, and by whom. Raises NotFoundError where the server is older than that."""
        return await self._connection.json("GET", "/v1/refusals", wire.Refusals, auth=Auth.DEVICE)
