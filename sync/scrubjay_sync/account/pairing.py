"""Letting in a machine that asks, by words that a person carries from its screen to this one, and back.

Theory of operation. The machine that asks commits to its keys and to a nonce; this device answers with a nonce of its
own and the end of the log that it holds; only then does the machine reveal its nonce, and both show words over it all.
A server in between has to choose what it shows each side before it knows that side's nonce, so it cannot search for
keys or for a log that make the words equal: it has one guess. This device's nonce is made of what it answers, with a
key that it alone has, so that one answer has one nonce, in whichever process a command runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState, EntryType
from scrubjay_shared.errors import ConflictError, DeniedError, PendingError, SplitError
from scrubjay_shared.wire import Enrolment, PairingAnswer
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.account.member import Member
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.keys.digests import pairing_commitment, pairing_digest
from scrubjay_sync.keys.keyring import Keyring
from scrubjay_sync.words import PairingWords, pairing_words

_AGAIN = "run scrubjay devices approve again: the machine will show other words"


async def answer(member: Member, cloud: Cloud, asking: Enrolment, *, anew: bool = False) -> Enrolment:
    """Answer a machine that asks, so that it shows its words. Answering again changes nothing.

    One is answered until it is let in, or somebody begins `anew`: each answer is a guess at the words for a server that
    shows one machine after another. Raises ConflictError for any other, when another device answered it, or when the
    account has changed since.
    """
    head = member.state.head
    if anew or not member.answering:
        member.answering = _question(asking)
    elif member.answering != _question(asking):
        raise ConflictError(
            "another machine asks now than the one that was answered: it was not answered",
            hint="if you know of both, run scrubjay devices approve again; if not, somebody may be in between",
        )
    nonce = _nonce(member, asking, head)
    if not asking.answer:
        asking = await cloud.account.answer(asking.id, PairingAnswer(nonce=nonce, head=head))
    _check_answer(asking, nonce, head)
    return asking


def words_for(member: Member, asking: Enrolment) -> PairingWords:
    """Return the words that the machine must show if it is the one that it seems to be, and those that prove it so.

    Raises PendingError before the machine has seen the answer, SplitError when it reveals another nonce than it had
    committed to, ConflictError as `answer` does.
    """
    state = member.state
    nonce = _nonce(member, asking, state.head)
    _check_answer(asking, nonce, state.head)
    if not asking.reveal:
        raise PendingError(
            "the machine that asks has not shown its words yet", hint="is scrubjay login still running there? try again"
        )
    committed = pairing_commitment(asking.reveal, asking.device, asking.sign_pub, asking.wrap_pub)
    if committed != asking.commitment:
        raise SplitError(
            "the machine that asks is not the one that asked first: its keys were changed on the way",
            hint="do not trust this server: it may have put itself in between",
        )
    digest = pairing_digest(
        genesis=state.genesis,
        head=state.head,
        device=asking.device,
        sign_pub=asking.sign_pub,
        wrap_pub=asking.wrap_pub,
        asking=asking.reveal,
        answering=nonce,
    )
    return pairing_words(digest)


async def approve(member: Member, cloud: Cloud, asking: Enrolment, words: Sequence[str]) -> tuple[str, ...]:
    """Let in the machine that shows these words: it will hold all keys of the account.

    Returns the words that a person types there, without which it does not take this account for theirs. Raises
    DeniedError when the words are others: somebody is in between.
    """
    expected = words_for(member, asking)
    head = member.state.head
    if expected.shown != tuple(words):
        raise DeniedError(
            "the words are not those of the machine that asks: it was not added",
            hint="look at its screen and type them again; if they still differ, somebody may be in between: stop its"
            " login",
        )

    def draft(state: AccountState, _: Keyring) -> Draft:
        if state.head != head:
            raise ConflictError("the account has changed since the words were shown: it was not added", hint=_AGAIN)
        body = account_log.device_body(asking.device, sign_pub=asking.sign_pub, wrap_pub=asking.wrap_pub)
        return Draft(entries=[(EntryType.DEVICE_ADD, body)])

    await member.append(cloud, draft)
    member.answering = b""
    await cloud.account.approve(asking.id)
    return expected.proof


def _nonce(member: Member, asking: Enrolment, head: bytes) -> bytes:
    """Return this device's nonce for one question and one state of the account: nobody else can know it before."""
    question = _question(asking) + head
    return hashlib.sha256(b"sjs/1/pair" + member.sign(b"sjs/1/pair/nonce" + question)).digest()


def _question(asking: Enrolment) -> bytes:
    """Return what a machine that asks says of itself."""
    return asking.commitment + asking.device + asking.sign_pub + asking.wrap_pub


def _check_answer(asking: Enrolment, nonce: bytes, head: bytes) -> None:
    if asking.answer_head and asking.answer_head != head:
        raise ConflictError("the account has changed since the machine was answered", hint=_AGAIN)
    if asking.answer != nonce:
        raise ConflictError(
            "another device has answered the machine that asks",
            hint="approve it there, or stop its login and begin it again",
        )
