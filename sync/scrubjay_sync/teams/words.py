"""What two people compare when one lets the other into a team: twelve words each way, 132 bits. Pure.

Nothing in them is chosen by the server, and there is no short secret in between, so they may be compared at any time
and by any way that the server does not control. Another card or another team with the same words is a second preimage
of 132 bits.
"""

from __future__ import annotations

import hashlib

from scrubjay_shared.teams import TeamMember
from scrubjay_shared.teams.records import TeamCard
from scrubjay_sync.words import words_of

COUNT = 12
"""Words: these stand for long, so that who is in between could search for others with the same beginning."""


def card_words(card: TeamCard) -> tuple[str, ...]:
    """Return the words of a person's card: whose account, and which keys."""
    return _words(b"sjs/1/team/card" + card.account + card.sign_pub + card.wrap_pub)


def join_words(team: bytes, head: bytes, member: TeamMember) -> tuple[str, ...]:
    """Return the words of somebody's coming into a team; `head` is the hash of the entry that let them in.

    They stand for the team, everything in its log up to there, and the keys that it has of that person.
    """
    return _words(b"sjs/1/team/join" + team + head + member.account + member.sign_pub + member.wrap_pub)


def log_words(team: bytes, head: bytes) -> tuple[str, ...]:
    """Return the words of a team's log up to an entry: members who have seen the same show the same."""
    return words_of(hashlib.sha256(b"sjs/1/team/head" + team + head).digest())


def _words(message: bytes) -> tuple[str, ...]:
    return words_of(hashlib.sha256(message).digest(), COUNT)
