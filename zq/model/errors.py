"""The error tree. Every error that a caller can meet is one of these.

ZqError
├── InvalidRequest          what was sent is wrong; sending it again will not help
│   └── InvalidFilter       a jq program that does not compile
├── NotBuilt                a feature of the API that this version does not have
├── NotFound
│   ├── JobNotFound
│   ├── NotInFlight         an acknowledgement of a job that nobody holds
│   ├── SweepNotFound       it has never been, or is done
│   ├── ErrorRecordNotFound
│   └── WorkerNotFound      nobody of this name has a stream open
├── Unauthorized            no key, or none that is known
├── Forbidden               known or not, this caller may not do this
│   ├── ScopeMissing
│   ├── QueueOutOfReach
│   ├── ForeignHost         a name that is not this server's: see `zq.http.browsers`
│   └── ForeignPage         a page of another site, in somebody's browser
├── Conflict
│   ├── KeyConflict         a unique key belongs to a job that the caller may not see
│   ├── CursorAhead         a place in a log that this log has never come to
│   ├── StaleLease          the delivery that is acknowledged has ended
│   ├── NotCancellable      a job that is running or finished
│   ├── NotFinished         only a finished job has a retention that runs
│   ├── NotDead             only a dead job can be revived
│   └── DeadLetterCycle     dying jobs would go round in circles
├── Gone
│   ├── JobCancelled        nobody will ever see its result
│   ├── JobExpired          nobody took it in time
│   └── RecordsGone         retention has removed them from their log
├── Unprocessable           well formed, but the job's state or the field's meaning refuses it
├── RequestTimeout          the request has not arrived in time
│   ├── HeaderTimeout
│   └── BodyTimeout
├── TooLarge                a body over its limit
│   ├── PayloadTooLarge
│   └── TooManyItems        in one bulk request
├── Unavailable             a passing cause; the same request may succeed later
│   ├── InboxFull
│   ├── WalFull             a reader keeps the write-ahead log from being emptied
│   ├── TooManyConnections
│   ├── TooManyStreams
│   ├── AnswersFull         of answers that their clients do not read
│   ├── ReadTimeout
│   ├── ReadersBusy         long reads wait for each other
│   ├── FilterAborted
│   ├── FiltersBusy         jq filters wait for each other
│   └── OutcomeUnknown      the disk failed while the change was being written
├── LimitReached            there is as much of something as there may be; there will be room again
│   ├── QueueFull           a queue has as many unfinished jobs as its settings allow
│   └── TooManySweeps       as many changes by filter run as may
├── StorageFull             no space left for new jobs; acknowledgements still pass
└── Internal                a fault of zq itself; the log has the traceback
"""

from collections.abc import Iterable


class ZqError(Exception):
    """Base of all. `code` is stable and meant for programs, the message for people."""

    code = "error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidRequest(ZqError):
    code = "invalid_request"


class InvalidFilter(InvalidRequest):
    code = "invalid_filter"


class NotBuilt(ZqError):
    code = "not_built"


class NotFound(ZqError):
    code = "not_found"


class JobNotFound(NotFound):
    code = "job_not_found"

    def __init__(self) -> None:
        super().__init__("job not found")


class NotInFlight(NotFound):
    code = "not_in_flight"

    def __init__(self) -> None:
        super().__init__("job not found in in-flight set")


class SweepNotFound(NotFound):
    code = "sweep_not_found"

    def __init__(self) -> None:
        super().__init__("no such sweep is running")


class ErrorRecordNotFound(NotFound):
    code = "error_record_not_found"

    def __init__(self) -> None:
        super().__init__("error record not found")


class WorkerNotFound(NotFound):
    code = "worker_not_found"

    def __init__(self) -> None:
        super().__init__("no worker of this id has a stream open: see GET /workers")


class Unauthorized(ZqError):
    code = "unauthorized"


class Forbidden(ZqError):
    code = "forbidden"


class ScopeMissing(Forbidden):
    code = "scope_missing"


class QueueOutOfReach(Forbidden):
    code = "queue_out_of_reach"

    def __init__(self, queue: str, prefixes: Iterable[str]) -> None:
        shown = ", ".join(map(repr, prefixes))
        super().__init__(
            f"the queue {queue!r} is not open to this key: it is for queues that begin with {shown}"
        )


class ForeignHost(Forbidden):
    code = "foreign_host"


class ForeignPage(Forbidden):
    code = "foreign_page"


class Conflict(ZqError):
    code = "conflict"


class KeyConflict(Conflict):
    code = "key_conflict"

    def __init__(self) -> None:
        super().__init__("a job that this key may not see has the same unique_key")


class StaleLease(Conflict):
    code = "stale_lease"

    def __init__(self) -> None:
        super().__init__("this delivery of the job has ended: drop what came of it")


class CursorAhead(Conflict):
    code = "cursor_ahead"

    def __init__(self, after: int, max_seq: int) -> None:
        super().__init__(
            f"there has never been a record {after}, the last is {max_seq}: the cursor is of"
            " another log, or the database was put back to an earlier state"
        )


class NotCancellable(Conflict):
    code = "not_cancellable"

    def __init__(self, status: str) -> None:
        remedy = " without force" if status == "in_flight" else ""
        super().__init__(f"a job that is {status} cannot be cancelled{remedy}")
        self.status = status


class NotFinished(Conflict):
    code = "not_finished"

    def __init__(self, status: str) -> None:
        super().__init__(f"the job is {status}: its retention begins when it is finished")
        self.status = status


class NotDead(Conflict):
    code = "not_dead"

    def __init__(self, status: str) -> None:
        super().__init__(f"the job is {status}: only a dead job can be revived")
        self.status = status


class DeadLetterCycle(Conflict):
    code = "dead_letter_cycle"

    def __init__(self, path: Iterable[str]) -> None:
        shown = " -> ".join(map(repr, path))
        super().__init__(f"jobs that die would go round in circles: {shown}")


class Gone(ZqError):
    code = "gone"


class JobCancelled(Gone):
    code = "job_cancelled"

    def __init__(self) -> None:
        super().__init__("the job was cancelled")


class RecordsGone(Gone):
    code = "records_gone"

    min_seq = 1
    """The oldest record that is kept behind those that are gone."""

    def __init__(self, wanted: int, min_seq: int) -> None:
        super().__init__(
            f"record {wanted} is past its retention or damaged, the next is {min_seq}: go on"
            f" with after={min_seq - 1}, and count what lies between as lost"
        )
        self.min_seq = min_seq


class JobExpired(Gone):
    code = "job_expired"

    def __init__(self) -> None:
        super().__init__("the job has expired: nobody took it in time")


class Unprocessable(ZqError):
    code = "unprocessable"


class RequestTimeout(ZqError):
    code = "request_timeout"


class HeaderTimeout(RequestTimeout):
    code = "header_timeout"


class BodyTimeout(RequestTimeout):
    code = "body_timeout"


class TooLarge(ZqError):
    code = "too_large"


class PayloadTooLarge(TooLarge):
    code = "payload_too_large"


class TooManyItems(TooLarge):
    code = "too_many_items"


class Unavailable(ZqError):
    code = "unavailable"

    retry_after_s = 1
    """Advice to the client: seconds to wait before the next try."""


class InboxFull(Unavailable):
    code = "inbox_full"


class WalFull(Unavailable):
    code = "wal_full"


class TooManyConnections(Unavailable):
    code = "too_many_connections"


class TooManyStreams(Unavailable):
    code = "too_many_streams"


class AnswersFull(Unavailable):
    code = "answers_full"


class ReadTimeout(Unavailable):
    code = "read_timeout"


class ReadersBusy(Unavailable):
    code = "readers_busy"

    def __init__(self, cause: str) -> None:
        super().__init__(
            f"{cause}: try again later, ask less often, or narrow the filters of what is asked (by"
            " id, status or queue)"
        )


class FilterAborted(Unavailable):
    code = "filter_aborted"


class FiltersBusy(Unavailable):
    code = "filters_busy"

    def __init__(self, waiting: int) -> None:
        super().__init__(
            f"{waiting} jq filters wait for their turn already: try again later, ask less often, or"
            " use the other filters alone"
        )


class OutcomeUnknown(Unavailable):
    code = "outcome_unknown"


class LimitReached(ZqError):
    code = "limit_reached"

    retry_after_s = 1


class QueueFull(LimitReached):
    code = "queue_full"

    def __init__(self, queue: str, max_depth: int) -> None:
        super().__init__(
            f"the queue {queue!r} has room for {max_depth} unfinished jobs and no more: try again"
            " when workers have finished some, or raise its max_depth"
        )


class TooManySweeps(LimitReached):
    code = "too_many_sweeps"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"{most} changes by filter run already: try again when one has ended (`GET /sweeps`"
            " shows them), or raise --max-sweeps"
        )


class StorageFull(ZqError):
    code = "storage_full"


class Internal(ZqError):
    code = "internal"

    def __init__(self) -> None:
        super().__init__("internal server error")
