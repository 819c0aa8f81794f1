"""What a background job is, and the jobs of one process by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from scrubjay.policy import NightPolicy
from scrubjay_shared.errors import ConflictError, NotFoundError


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """When a job looks for work that nobody announced: every `seconds`, for the first time after `first_seconds`.

    Told of work, it looks a little later, so that one run does what comes in a burst; one that `gathers` nothing looks
    at once, for who tells it has waited already.

    Work of the night has `every_days`: it looks as often, but runs once in so many (`conditions.is_due`), and waits
    while questions are asked, for a socket and for an idle machine (`conditions.reason_to_wait`).
    """

    seconds: float
    first_seconds: float = 0.0
    gathers: bool = True
    every_days: int | None = None

    @classmethod
    def nightly(cls, policy: NightPolicy, *, every_days: int = 1) -> Trigger:
        """Return the trigger of work that is done once a night, or once in so many."""
        return cls(seconds=policy.look_seconds, first_seconds=policy.look_seconds, every_days=every_days)


class Job(Protocol):
    """Work that the daemon does by itself. Idempotent: a run that a crash cut off is simply done again.

    The core and other packages (`plugins`) bring jobs in the same way; the scheduler knows nothing else of them.
    """

    @property
    def name(self) -> str:
        """The name that people and the store know it by."""

    @property
    def trigger(self) -> Trigger:
        """When it looks for work by itself."""

    async def due(self) -> bool:
        """Say whether there may be something to do. Asked at every look of an idle store: must cost little."""

    async def pending(self) -> int | None:
        """Return how much there is to do, for people; None where the job has no part now, and is not listed."""

    async def run(self) -> object:
        """Do what there is to do. Raises ScrubjayError, or whatever went wrong; the scheduler notes it."""


@runtime_checkable
class Patient(Protocol):
    """A job whose own runs leave alone what is too fresh. Whoever asks for a run means that, too."""

    async def finish(self) -> object:
        """Do all that waits, fresh or not. Raises as `Job.run` does."""


class Jobs:
    """The jobs of one process."""

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self._by_name: dict[str, Job] = {}
        for job in jobs:
            self.add(job)

    def add(self, job: Job) -> None:
        """Take one more job. Raises ConflictError when another has its name."""
        if job.name in self._by_name:
            raise ConflictError(f"there is a job {job.name!r} already", hint="give the job of the package another name")
        self._by_name[job.name] = job

    def remove(self, name: str) -> None:
        """Let go of a job; nothing happens when there is none of that name."""
        self._by_name.pop(name, None)

    def named(self, name: str) -> Job:
        """Return a job. Raises NotFoundError when none has that name."""
        found = self._by_name.get(name)
        if found is None:
            raise NotFoundError(f"there is no job {name[:40]!r}", hint=f"jobs: {', '.join(self._by_name)}")
        return found

    def __iter__(self) -> Iterator[Job]:
        return iter(tuple(self._by_name.values()))
