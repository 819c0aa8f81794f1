"""How background jobs have gone."""

from __future__ import annotations

from scrubjay.store.write_context import WriteContext


class JobHistory:
    """The table `job`."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context
        self._fetch = context.queries.fetch
        self._run = context.run
        self._run_many = context.run_many

    def take_lease(self, job: str, holder: str, lease_ms: int) -> bool:
        """Take the lease of a job, unless somebody else holds one that has not run out."""
        self._run("insert or ignore into job (name, runs, failures) values (?, 0, 0)", (job,))
        held = self._fetch("select holder, until from job where name = ?", (job,))[0]
        if held[0] not in {None, holder} and held[1] > self._context.now and held[1] <= self._context.now + lease_ms:
            return False
        self._run(
            "update job set holder = ?, until = ?, last_start = ? where name = ?",
            (holder, self._context.now + lease_ms, self._context.now, job),
        )
        return True

    def end_lease(self, job: str, took_ms: int, error: str | None) -> None:
        """Give a lease back and note how the job went."""
        self._run(
            "update job set holder = null, until = null, runs = runs + 1, failures = failures + ?, last_ms = ?,"
            " last_error = ? where name = ?",
            (int(error is not None), took_ms, error, job),
        )

    def drop_leases(self) -> None:
        """Give back all leases: whoever opens the store is alone, so they are a dead process's."""
        self._run("update job set holder = null, until = null where holder is not null")
