"""Sends the statements of ticks in libpq's pipeline mode, and waits only for wanted answers.

PostgreSQL runs the statements in their order. If one fails, it passes over all that were sent after
it, COMMIT too, until both sides agree where to go on. So no commit comes without the statements
before it, whoever has looked at their answers.
"""

import select
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import errors
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus, Format, PipelineStatus
from psycopg.pq.abc import PGresult

from zq.store.errors import ForeignDatabase, StoreAway, StoreError
from zq.store.postgres.connection import STATEMENTS, Connection, store_error
from zq.store.postgres.queries import Statement, compiled

Row = tuple[Any, ...]

_NOTHING: Mapping[str, Any] = {}

_BEGIN, _COMMIT, _ROLLBACK, _LATER = map(
    compiled, ("BEGIN", "COMMIT", "ROLLBACK", "SET LOCAL synchronous_commit = off")
)

_FAILED = frozenset({ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE, ExecStatus.PIPELINE_ABORTED})


LOOK_MS = 1000
"""How often a wait for an answer looks if it should end."""


class Sent:
    """A statement that was sent, or its preparation, and the answer once that has come."""

    __slots__ = ("is_lost", "prepares", "result")

    def __init__(self, prepares: bytes | None = None) -> None:
        self.prepares = prepares
        """The text that this prepares."""
        self.result: PGresult | None = None
        self.is_lost = False
        """True if the connection was lost before the answer came."""


class Pipeline:
    """The statements of one connection, which nobody else uses during a transaction."""

    def __init__(self, connection: Connection) -> None:
        self.trips = 0
        """How often answers were waited for."""
        self.flush_s = 0.0
        """How many seconds PostgreSQL took for the last COMMIT; 0 if that was not `durable`."""
        self.gives_up = False
        """Set by any thread to end the wait for an answer, as if the connection were lost."""
        self._last_asked_at = 0.0
        """When the last of some answers began to be waited for."""
        self.adopt(connection)

    def adopt(self, connection: Connection) -> None:
        """Use a connection that was just opened from now on."""
        self.connection = connection
        self.process = connection.info.backend_pid
        """The process that PostgreSQL has for it."""
        self.is_open = False
        """True if a transaction has begun and not ended."""
        self._pgconn = connection.pgconn
        self._decoder = Transformer(connection)
        self._poll = select.poll()
        self._poll.register(self._pgconn.socket, select.POLLIN)
        self._waiting: deque[Sent] = deque()
        self._names: dict[bytes, bytes] = {}
        """The names of prepared statements by their texts, the latest used ones last."""
        self._named = 0

    def notice_loss(self) -> None:
        """See if the connection was lost while nobody used it, before anything is sent by it."""
        if not self.connection.closed and self._poll.poll(0):
            try:
                self._pgconn.consume_input()
            except psycopg.Error as error:
                self._lost(error)

    def begin(self) -> None:
        """Begin a transaction. Nothing is waited for."""
        self.is_open = True
        self.send(_BEGIN)

    def commit(self, durable: bool = True) -> None:
        """Commit, and wait for the flush if it is `durable`.

        Raises the error of a statement that has failed: nothing is committed then.
        """
        if durable:
            self._ask_for_answers()
        else:
            self.send(_LATER)
        self.send(_COMMIT)
        self._receive(ends=True)
        self.flush_s = time.perf_counter() - self._last_asked_at if durable else 0.0
        self.is_open = False

    def roll_back(self) -> None:
        """Undo the transaction, whatever has become of its statements."""
        self.clear()
        self.send(_ROLLBACK)
        self._receive(ends=True)
        self.is_open = False

    def clear(self) -> None:
        """Wait for all answers. Raises `StoreAway`, but no error of a statement."""
        try:
            self._receive()
        except StoreAway:
            raise
        except StoreError:
            return

    def send(self, statement: Statement, parameters: Mapping[str, Any] = _NOTHING) -> Sent:
        """Send a statement. It is prepared if it is new, or was not used for long."""
        values = [None if v is None else v.encode() for v in statement.bound(parameters)]
        sql, pgconn = statement.sql, self._pgconn
        try:
            if pgconn.pipeline_status == PipelineStatus.OFF:
                pgconn.enter_pipeline_mode()
            name = self._names.pop(sql, None) or self._prepare(sql)
            self._names[sql] = name
            pgconn.send_query_prepared(name, values, result_format=Format.BINARY)
        except psycopg.Error as error:
            raise self._lost(error) from error
        sent = Sent()
        self._waiting.append(sent)
        return sent

    def rows(self, sent: Sent) -> list[Row]:
        """The rows that a statement has returned."""
        result = self.answer(sent)
        self._decoder.set_pgresult(result)
        return self._decoder.load_rows(0, result.ntuples, tuple)

    def answer(self, sent: Sent) -> PGresult:
        """The answer to a statement. If it has not come yet, all answers are waited for.

        Raises the error of the first of these statements that has failed.
        """
        if sent.result is None:
            self._receive(ends=not self.is_open)
        assert sent.result is not None, "the answer was lost with an earlier error"
        return sent.result

    def _ask_for_answers(self) -> None:
        """Have PostgreSQL send the answers up to here before it goes on. Nothing is waited for.

        What comes next is timed from then on.
        """
        try:
            if self._waiting:
                self._pgconn.send_flush_request()
        except psycopg.Error as error:
            raise self._lost(error) from error

    def _prepare(self, sql: bytes) -> bytes:
        if len(self._names) >= STATEMENTS:
            oldest = next(iter(self._names))
            self._pgconn.send_query_params(b'DEALLOCATE "%s"' % self._names.pop(oldest), None)
            self._waiting.append(Sent())
        self._named += 1
        name = b"zq_%d_%s" % (self._named, sql.split(None, 1)[0])
        self._pgconn.send_prepare(name, sql)
        self._waiting.append(Sent(sql))
        return name

    def _receive(self, *, ends: bool = False) -> None:
        """Wait for all answers. If this `ends` the transaction, leave the pipeline.

        If a statement has failed, agree with PostgreSQL where to go on, and raise its error.
        """
        pgconn = self._pgconn
        if not self._waiting:
            return
        self.trips += 1
        try:
            if ends:
                pgconn.pipeline_sync()
            else:
                pgconn.send_flush_request()
            failure = self._take_answers()
            if failure is not None and not ends:
                pgconn.pipeline_sync()
            if failure is not None or ends:
                self._next()
            if ends:
                pgconn.exit_pipeline_mode()
        except psycopg.Error as error:
            raise self._lost(error) from error
        if failure is not None:
            raise store_error(failure) from failure

    def _lost(self, error: psycopg.Error) -> StoreError | ForeignDatabase:
        """Give up the connection. Statements that were sent get no answers any more."""
        self.is_open = False
        for sent in self._waiting:
            sent.is_lost = True
        self._waiting.clear()
        self.connection.close()
        return store_error(error)

    def _take_answers(self) -> psycopg.Error | None:
        """Give all statements their answers. Return the error of the first that has failed.

        Raises `psycopg.OperationalError` if the connection is lost.
        """
        failure: psycopg.Error | None = None
        while self._waiting:
            sent = self._waiting[0]
            if len(self._waiting) == 1:
                self._last_asked_at = time.perf_counter()
            result = self._next()
            assert result is not None, "each statement has an answer"
            self._next()
            self._waiting.popleft()
            if result.status not in _FAILED:
                sent.result = result
                continue
            if sent.prepares is not None:
                self._names.pop(sent.prepares, None)
            if failure is None:
                failure = errors.error_from_result(result, encoding="utf-8")
                if self._pgconn.status == ConnStatus.BAD:
                    raise failure
        return failure

    def _next(self) -> PGresult | None:
        """The next answer; None at the end of each statement's own."""
        pgconn = self._pgconn
        while pgconn.flush():
            # PostgreSQL reads no more before somebody reads what it says.
            self._poll.modify(pgconn.socket, select.POLLIN | select.POLLOUT)
            self._wait()
            self._poll.modify(pgconn.socket, select.POLLIN)
            pgconn.consume_input()
        while pgconn.is_busy():
            self._wait()
            pgconn.consume_input()
        return pgconn.get_result()

    def _wait(self) -> None:
        """Wait until PostgreSQL has said or read something."""
        while not self._poll.poll(LOOK_MS):
            if self.gives_up:
                raise psycopg.OperationalError("this server ends, and does not wait for an answer")
