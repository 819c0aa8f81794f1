"""Networks that an account is known from: its devices and right passwords came from there, lately.

Whoever guesses at a name from many networks uses up what the name is given over all of them; who comes from a known one
does not depend on that. The server keeps keyed hashes, a few for each account.
"""

from __future__ import annotations

import hmac

from scrubjay_cloud.database.port import Transaction
from scrubjay_cloud.limits import network_of
from scrubjay_cloud.policy import CloudPolicy
from scrubjay_cloud.service import Service
from scrubjay_shared.clock import Millis


def network_hash(service: Service, account: bytes, address: bytes) -> bytes:
    """Return what is kept of the network that an address is of; empty where nobody knows the address."""
    network = network_of(address)
    return hmac.digest(service.derived("network"), account + network, "sha256")[:16] if network else b""


def seen_at(tx: Transaction, account: bytes, network: bytes) -> Millis:
    """Return when an account was last seen in a network, 0 for never."""
    row = tx.row("select seen from known_network where account = ? and network = ?", (account, network))
    return Millis(row[0] if row else 0)


def note_network(tx: Transaction, account: bytes, network: bytes, now: Millis, policy: CloudPolicy) -> None:
    """Note that an account was seen in a network just now, once a day, and forget what is more than a few."""
    if not network or seen_at(tx, account, network) > now - policy.known_again_ms:
        return
    tx.execute(
        "insert into known_network (account, network, seen) values (?, ?, ?)"
        " on conflict (account, network) do update set seen = excluded.seen",
        (account, network, now),
    )
    tx.execute(
        "delete from known_network where account = ? and network not in (select network from known_network"
        " where account = ? order by seen desc, network limit ?)",
        (account, account, policy.known_networks),
    )
