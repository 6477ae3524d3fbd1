"""The handle of a file's queue, which producers push to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from zq.client.backend import run
from zq.client.core import Core
from zq.client.errors import EmptyPayload, MissingGroup, NotFifo
from zq.client.events import Event
from zq.client.options import Form, Options, check, merge
from zq.client.payloads import content_key, packed
from zq.client.values import MISSING, Missing, Submission

if TYPE_CHECKING:
    from zq.client.files.web import Handler

T = TypeVar("T")

FIFO = ".fifo"


@dataclass(frozen=True)
class FileQueue(Generic[T]):
    """A queue by its file's name. `group` and `dedupe` return another handle, which can be kept.

    A queue whose name ends in ``.fifo`` runs the jobs of a group one after the other, in the order
    of their pushes. A copy within five minutes is not stored: it counts as the first job.
    """

    core: Core
    name: str
    options: Options
    chosen_group: str | None = None
    chosen_dedupe: str | Missing | None = MISSING

    def __str__(self) -> str:
        return self.name

    @property
    def queue_name(self) -> str:
        """The name, including `.fifo`."""
        return self.name

    @property
    def fifo(self) -> bool:
        """True if its jobs have groups."""
        return self.name.endswith(FIFO)

    def group(self, id: str) -> "FileQueue[T]":
        """This queue for jobs of one group. Raises `NotFifo`."""
        self._require_fifo("group")
        check({"group": id})
        return replace(self, chosen_group=id)

    def dedupe(self, id: str | None) -> "FileQueue[T]":
        """This queue for copies of one job, recognised by this id. With None, no job is a copy.

        Without it, jobs of a group with equal payloads are copies. Raises `NotFifo`.
        """
        self._require_fifo("dedupe")
        check({"dedupe": id})
        return replace(self, chosen_dedupe=id)

    async def push(
        self,
        payload: T,
        params: Mapping[str, Any] | None = None,
        *,
        user: str | None = None,
    ) -> str:
        """Enqueue a job and return its id. The payload is an object that fits JSON, text or bytes.

        The handler gets `params` as ``job.params``, and `user` as ``job.user``. Raises
        `MissingGroup`, `EmptyPayload` or a `BackendError`.
        """
        wanted = self._submission(payload, params, user)
        (stored,) = await self.core.backend.enqueue([wanted])
        if not stored.duplicate and self.core.events.wanted("enqueued"):
            await self.core.events.emit(Event("enqueued", self.name, stored.id))
        return stored.id

    __call__ = push

    def push_sync(
        self,
        payload: T,
        params: Mapping[str, Any] | None = None,
        *,
        user: str | None = None,
    ) -> str:
        """Like `push`, for code without an event loop: it blocks."""
        (stored,) = run(
            self.core.backend.blocking.enqueue([self._submission(payload, params, user)])
        )
        return stored.id

    @property
    def http(self) -> "Handler":
        """An aiohttp handler that pushes the bodies of requests: see `zq.client.files.web.handler`.

        ``router.add_post("/orders/{group}/{dedupe}", queue.http)``
        """
        return self.web()

    def web(
        self,
        *,
        accepts: tuple[str, ...] | None = None,
        user: Callable[[Any], str | None] | None = None,
    ) -> "Handler":
        """A handler with fewer media types, or with another way to find the user."""
        from zq.client.files.web import handler

        return handler(self, accepts, user)

    def _submission(
        self, payload: Any, params: Mapping[str, Any] | None, user: str | None
    ) -> Submission:
        if payload is None or payload in ("", b""):
            raise EmptyPayload(f"{self.name}: the payload is empty")
        if self.fifo and self.chosen_group is None:
            raise MissingGroup(f"{self.name} is a FIFO queue: write .group(id).push(…)")
        data, content_type = packed(payload)
        options: dict[str, Any] = {}
        if params:
            options["meta"] = {**self.options.get("meta", {}), "params": dict(params)}
        if user is not None:
            options["user"] = user
        if content_type is not None:
            options["content_type"] = content_type
        if self.fifo:
            copy = self.chosen_dedupe
            options["group"] = self.chosen_group
            options["dedupe"] = content_key(data) if copy is MISSING else copy
        form = Form(self.name, self.name, merge(self.options, cast(Options, options)))
        return form.submission(data)

    def _require_fifo(self, what: str) -> None:
        if not self.fifo:
            raise NotFifo(
                f"{self.name} is not a FIFO queue and takes no {what}: only queues whose names end"
                f" in {FIFO} do"
            )
