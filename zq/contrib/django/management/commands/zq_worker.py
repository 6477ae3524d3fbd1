"""`manage.py zq_worker`: executes the tasks of a backend."""

import contextlib
import logging
import os
import socket
from argparse import ArgumentParser
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from django.utils.autoreload import run_with_reloader

from zq import logs
from zq.client.errors import InvalidOption, ZqError
from zq.client.outcome import DrainReport
from zq.client.worker.places import CallingThread
from zq.client.worker.settling import tell_of_jobs
from zq.client.worker.worker import Worker, run_blocking
from zq.contrib.django.backend import ZqBackend
from zq.contrib.django.execution import worker_app
from zq.contrib.django.framework import task_backends
from zq.contrib.django.outbox import address_of
from zq.model.names import names_in
from zq.outbox import Relay

LEVELS = ("warn", "info", "debug", "trace")
"""The level of the log for each `--verbosity`."""

WORKER_OPTIONS = (
    *("concurrency", "prefetch", "threads", "processes", "lease", "stall_limit"),
    *("burst", "max_jobs", "shutdown_timeout"),
)
"""Options that are the worker's."""


class ZqWorker(BaseCommand):
    """The command."""

    help = "Executes the tasks of a backend of zq, and moves the rows of its outbox."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The options, named as in `zq worker`."""
        parser.add_argument("--backend", default="default", help="Alias of the backend in TASKS.")
        parser.add_argument("--queues", "-q", help="Queues (separate with commas). Default: QUEUES")
        parser.add_argument("--concurrency", "-c", type=int, default=1, help="Tasks at a time.")
        parser.add_argument("--prefetch", type=int, help="Tasks to hold at most.")
        parser.add_argument("--threads", type=int, help="Threads for ordinary functions.")
        parser.add_argument("--processes", type=int, default=0, help="Processes instead of these.")
        parser.add_argument("--lease", type=float, default=30.0, help="In seconds.")
        parser.add_argument("--stall-limit", type=int, default=2, help="See `zq worker --help`.")
        parser.add_argument("--burst", action="store_true", help="Stop when no task is left.")
        parser.add_argument("--max-jobs", type=int, help="Stop after this many tasks.")
        parser.add_argument("--shutdown-timeout", type=float, default=30.0, help="In seconds.")
        parser.add_argument("--no-relay", action="store_true", help="Leave the outbox to others.")
        parser.add_argument(
            "--reload", action="store_true", default=settings.DEBUG, help="Default: DEBUG"
        )
        parser.add_argument("--no-reload", action="store_false", dest="reload")

    def handle(self, **options: Any) -> None:
        """Work until a signal comes."""
        if options["backend"] not in task_backends.settings:
            known = ", ".join(task_backends.settings)
            raise CommandError(f"TASKS has no backend {options['backend']!r}: it has {known}")
        backend = task_backends[options["backend"]]
        if not isinstance(backend, ZqBackend):
            raise CommandError(f"the backend {options['backend']!r} is none of zq.contrib.django")
        if not logging.getLogger("zq.worker").hasHandlers():
            # LOGGING does not say where to, so the lines are those of `zq worker`.
            logs.set_up(LEVELS[options["verbosity"]])
            tell_of_jobs()
        queues = list(names_in(options["queues"] or "")) or sorted(backend.queues)
        if not queues:
            raise CommandError("the backend takes tasks of any queue: name some with --queues")
        if options["reload"] and not options["burst"]:
            # Django runs this in a thread, which gets no signals, and ends the process.
            run_with_reloader(self._work_or_end, backend, queues, options)
        else:
            self._work(backend, queues, options, handle_signals=True)

    def _work_or_end(self, backend: ZqBackend, queues: list[str], options: dict[str, Any]) -> None:
        try:
            self._work(backend, queues, options, handle_signals=False)
        except CommandError as error:
            # A change of the code would not mend it, and the reloader would wait for one.
            self.stderr.write(f"CommandError: {error}")
            os._exit(1)

    def _work(
        self, backend: ZqBackend, queues: list[str], options: dict[str, Any], handle_signals: bool
    ) -> None:
        in_memory = backend.in_memory
        worker_id = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:6]}"

        async def work() -> DrainReport:
            app = worker_app(backend, worker_id)
            relay = None
            if backend.on_commit and not options["no_relay"]:
                relay = Relay(app, address_of(connections[backend.database]))
                app.while_working(relay.run)
            app.on("started")(lambda _: self._say(f"zq_worker works on {', '.join(queues)}"))
            worker = Worker(
                app,
                queues=queues,
                worker_id=worker_id,
                **{name: options[name] for name in WORKER_OPTIONS},
            )
            # Jobs in memory are the process's own: closing the app would end them.
            async with contextlib.nullcontext() if in_memory else app:
                if relay is not None and options["burst"]:
                    await relay.run_until_empty()  # the worker might end before the first row came
                return await worker.run(handle_signals=handle_signals and not is_test)

        # A test's connection belongs to its thread, which therefore runs the tasks.
        is_test = in_memory and options["burst"]
        try:
            report = CallingThread().run(work) if is_test else run_blocking(work())
        except InvalidOption as error:
            raise CommandError(error.message) from None
        except ZqError as error:
            raise CommandError(f"{error.code}: {error.message}") from None
        self._say(f"zq_worker has finished {report.finished} tasks")
        if report.stuck or report.aborted:
            self.stdout.flush()
            os._exit(1)  # the interpreter might wait for handlers that do not end

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


Command = ZqWorker
"""The name by which Django finds it."""
