"""pgvector's index over the vectors of a large scope."""

from __future__ import annotations

from hashlib import sha256

from scrubjay_cloud.database.port import Database, Transaction
from scrubjay_cloud.policy import SearchPolicy


async def indexed(database: Database, policy: SearchPolicy) -> int:
    """Give each large scope an index of its own (PostgreSQL), and drop those of scopes that are small again.

    An index holds one scope: no other's vectors are walked through, and a filter by scope takes nothing away. Returns
    how many were made or dropped. Making one keeps vectors from being written for as long as it takes.
    """
    if database.dialect != "postgres" or not database.searches:
        return 0
    counted = "select account, scope, count(*), max(vector_dims(vec)) from mem_embedding group by account, scope"
    scopes = {
        _index(account, scope): (account, scope, count, width)
        for account, scope, count, width in await database.read(lambda tx: tx.rows(counted))
    }
    named = "select indexname::text from pg_indexes where tablename = 'mem_embedding' and indexname like 'mem_near_%'"
    there = {name for (name,) in await database.read(lambda tx: tx.rows(named))}
    dropped = [name for name in there if name not in scopes or scopes[name][2] < policy.index_rows // 2]
    made = [name for name, (_, _, count, _) in scopes.items() if name not in there and count >= policy.index_rows]
    for name in dropped:
        await database.write(lambda tx, name=name: tx.execute(f"drop index if exists {name}"))  # type: ignore[misc]
    for name in made:
        account, scope, _, width = scopes[name]
        sql = (
            f"create index if not exists {name} on mem_embedding using hnsw ((vec::vector({width})) vector_cosine_ops)"
            f" where account = '\\x{account.hex()}'::bytea and scope = '\\x{scope.hex()}'::bytea"
        )

        def work(tx: Transaction, sql: str = sql) -> None:
            tx.execute("set local statement_timeout = 0")
            tx.execute(sql)

        await database.write(work)
    return len(dropped) + len(made)


def _index(account: bytes, scope: bytes) -> str:
    return f"mem_near_{sha256(account + scope).hexdigest()[:32]}"
