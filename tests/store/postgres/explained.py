"""What PostgreSQL says of the plan of a statement, in words that a list of plans has."""

import json
import re
from collections.abc import Iterator
from typing import Any

from zq.store.postgres.connection import Connection
from zq.store.postgres.queries import compiled

_FIRST_COLUMNS = """
SELECT c.relname, pg_get_indexdef(c.oid, 1, true)
FROM pg_class AS c JOIN pg_index ON indexrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace
"""

Plan = frozenset[str]


class Explained:
    """Explains statements to a connection that is set up as those of the store."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._first = {str(k): str(v) for k, v in connection.execute(_FIRST_COLUMNS)}

    def plan(self, text: str) -> tuple[Plan, Plan]:
        """How a text finds its rows; and the conditions by which it does."""
        statement = compiled(text)
        nulls = ", ".join(["NULL"] * len(statement.places))
        asked = f"EXPLAIN (FORMAT JSON) EXECUTE told{f'({nulls})' if nulls else ''}"
        pgconn = self._connection.pgconn
        for sql in (b"DEALLOCATE ALL", b"PREPARE told AS " + statement.sql, asked.encode()):
            result = pgconn.exec_(sql)
            assert not result.error_message, (text, result.error_message.decode())
        found = result.get_value(0, 0)
        assert found is not None
        whole = json.loads(found)[0]["Plan"]
        return frozenset(self._words(whole)), frozenset(_conditions(whole))

    def _words(self, node: dict[str, Any], limited: bool = False) -> Iterator[str]:
        kind, table, index = (node.get(k) for k in ("Node Type", "Relation Name", "Index Name"))
        # Groups are made by a sort or, where PostgreSQL 18 thinks it cheaper, by a hash.
        if kind == "Sort" or node.get("Strategy") == "Hashed":
            yield "SORT"
        if kind == "Tid Scan":
            yield f"{table} BY ctid"
        elif table is not None and kind != "ModifyTable":
            by = f"{table} BY {index}" if index else f"{table}"
            first = re.escape(self._first.get(str(index), "-"))
            if re.search(rf"(?<!\w){first}(?!\w)", node.get("Index Cond", "")):
                yield by
            else:
                yield f"{'FIRST' if limited else 'ALL'} OF {by}"
        for part in node.get("Plans", ()):
            yield from self._words(part, (limited or kind == "Limit") and kind != "Sort")


def _conditions(node: dict[str, Any]) -> Iterator[str]:
    if "Relation Name" in node and node["Node Type"] != "ModifyTable":
        words = ("Relation Name", "Index Name", "Index Cond", "TID Cond")
        yield " ".join(str(node.get(word)) for word in words)
    for part in node.get("Plans", ()):
        yield from _conditions(part)
