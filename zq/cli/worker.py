"""`zq worker`: executes the jobs of an app until it is told to stop."""

import asyncio
import importlib
import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from zq import logs, systemd
from zq.cli.terminal import counted
from zq.cli.variables import unread_variables
from zq.cli.words import NAMES, SECONDS
from zq.config import LogFormat, LogLevel
from zq.model.names import meant

if TYPE_CHECKING:
    from zq.client.app import App
    from zq.client.outcome import DrainReport
    from zq.client.worker.worker import Worker

F = TypeVar("F", bound=Callable[..., Any])

EX_ABORTED = 1
EX_UNREACHABLE = 3

log = logging.getLogger("zq.worker")


def _option(flag: str, *more: str, **rest: Any) -> Callable[[F], F]:
    """An option and its variable: `--max-jobs` is ZQ_WORKER_MAX_JOBS."""
    variable = "ZQ_WORKER_" + flag.removeprefix("--").replace("-", "_").upper()
    return click.option(flag, *more, envvar=variable, show_envvar=True, **rest)


_COUNT = click.IntRange(min=1)
_LEVELS = get_args(LogLevel)
_FORMATS = get_args(LogFormat)


@click.command(
    short_help="Execute the jobs of a Python app.",
    epilog="""\b
Examples:
  zq worker shop.jobs:app                    all queues of the app
  zq worker shop.jobs:app -q mail -c 20      one queue, twenty jobs at a time
  zq worker shop.jobs:app --burst            until no job is left
  zq worker --package queues                 the queues of the files queues/NAME.py
  ZQ_URL=http://queue:7890 zq worker …       for apps that name no server

Exit codes: 0 after a clean stop, 1 if the worker had to leave work behind, 3 if no server can be
reached at the start. After the first SIGTERM or SIGINT, running jobs may finish; after the second,
the worker ends at once. Jobs that have not finished go back to their queue. The worker does not
wait for handlers that do not end when they are told to.
""",
)
@click.argument("app", metavar="[MODULE:APP]", required=False)
@_option(
    "--package",
    metavar="FOLDER",
    help="Folder of files, each of which is a queue with its handler.",
)
@_option(
    "--queues",
    "-q",
    type=NAMES,
    metavar="NAMES",
    help="Queues to work on (separate with commas). [default: all]",
)
@_option(
    "--concurrency",
    "-c",
    type=_COUNT,
    default=1,
    show_default=True,
    help="Jobs to execute at a time.",
)
@_option("--prefetch", type=_COUNT, help="Jobs to hold at most. [default: twice --concurrency]")
@_option("--threads", type=_COUNT, help="Threads for ordinary functions. [default: --concurrency]")
@_option(
    "--processes",
    type=click.IntRange(min=0),
    default=0,
    help="Processes for ordinary functions, instead of threads.",
)
@_option(
    "--lease", type=SECONDS, default="30s", help="How long the worker holds a job without renewal."
)
@_option(
    "--stall-limit",
    type=click.IntRange(min=0),
    default=2,
    help="How often a job may end its worker and be tried again, if its queue says nothing.",
)
@_option("--burst", is_flag=True, help="Stop when no job is left.")
@_option("--max-jobs", type=_COUNT, help="Stop after this many jobs.")
@_option("--shutdown-timeout", type=SECONDS, default="30s", help="How long a stop may take.")
@_option(
    "--cleanup-timeout",
    type=SECONDS,
    default="5s",
    help="How long a cancelled handler may clean up.",
)
@_option(
    "--connect-timeout", type=SECONDS, default="10s", help="How long to try to reach the server."
)
@_option(
    "--no-check",
    is_flag=True,
    help="Do not check the arguments of calls that handlers make: see ZQ_CHECK_CALLS.",
)
@_option(
    "--progress",
    type=SECONDS,
    help="How often to log how far the worker has come. [default: 10s on a terminal, else never]",
)
@_option(
    "--reload", is_flag=True, help="Start again whenever a Python file in this directory changes."
)
@_option("--log-level", type=click.Choice(_LEVELS), default="info", help="As for zq serve.")
@_option("--log-format", type=click.Choice(_FORMATS), help="As for zq serve.")
@_option("--json-logs", is_flag=True, help="As --log-format json.")
@click.pass_context
def worker(ctx: click.Context, /, app: str | None, package: str | None, **options: Any) -> None:
    """Execute the jobs of an app, MODULE:APP, of the files in a folder, or of both."""
    from zq.client import checks
    from zq.client.worker.settling import tell_of_jobs

    logs.set_up(options.pop("log_level"), _format(options))
    tell_of_jobs()
    for text in unread_variables(ctx.find_root().command, all=True):
        log.warning(text)
    if options.pop("reload"):
        ctx.exit(_reloading())
    if options.pop("no_check"):
        os.environ[checks.VARIABLE] = "no"  # the app reads it while it is made, in children too
    sys.path.insert(0, str(Path.cwd()))
    ctx.exit(_work(_app(app, package), options))


def _format(options: dict[str, Any]) -> str | None:
    given, json = options.pop("log_format"), options.pop("json_logs")
    if json and given not in (None, "json"):
        raise click.UsageError(f"give --json-logs or --log-format {given}, not both")
    return "json" if json else given


def _app(spec: str | None, package: str | None) -> "App":
    from zq.client.app import App
    from zq.client.errors import DiscoveryError

    if spec is None and package is None:
        raise click.UsageError("name an app (MODULE:APP) or a folder of queues (--package FOLDER)")
    app = App() if spec is None else load(spec)
    if package is not None:
        try:
            app.discover(package)
        except DiscoveryError as error:
            raise click.UsageError(error.message) from None
    return app


def load(spec: str) -> "App":
    """The app of ``module:name``. The name is `app` if none is given."""
    from zq.client.app import App
    from zq.client.errors import ZqError

    module, _, name = spec.partition(":")
    try:
        if module.startswith("."):
            raise ModuleNotFoundError(name=module)
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise click.UsageError(
            f"there is no module {module!r} in the Python path or this directory{_hint(spec)}"
        ) from None
    except ZqError as error:
        # The app cannot be made, for example because a variable has an invalid address.
        raise click.UsageError(f"{spec}: {error.message}") from None
    found = getattr(imported, name or "app", None)
    if found is None:
        there = _names_of_apps(imported)
        known = f": it has {there}" if there else ""
        raise click.UsageError(f"the module {module!r} has no {name or 'app'!r}{known}")
    if not isinstance(found, App):
        raise click.UsageError(f"{spec} is not a zq.App but a {type(found).__name__}")
    return found


def _names_of_apps(module: object) -> str:
    from zq.client.app import App

    return ", ".join(name for name, value in vars(module).items() if isinstance(value, App))


def _hint(spec: str) -> str:
    """The correct form of an app that was given as the path of a file, or with a dot before its
    name."""
    path, _, name = spec.partition(":")
    module = path.removeprefix("./").removesuffix(".py").replace("/", ".")
    if module != path:
        return f": write {module}:{name or 'app'}"
    module, _, app = path.rpartition(".")
    return f": write {module}:{app}" if module and not name else ""


def _work(app: "App", options: dict[str, Any]) -> int:
    from zq.client.errors import InvalidOption, Unavailable, ZqError
    from zq.client.worker.worker import Worker, run_blocking

    queues, progress_s = options.pop("queues"), options.pop("progress")
    if progress_s is None and sys.stdout.isatty():
        progress_s = 10.0
    try:
        made = Worker(app, queues=queues, **options)
        _warn_of_queues(app, queues or ())
        app.on("started")(lambda _event: _ready(app, made, options["concurrency"]))
        report = run_blocking(_run(app, made, progress_s))
    except InvalidOption as error:
        raise click.UsageError(error.message) from None
    except Unavailable as error:
        log.error(error.message)
        return EX_UNREACHABLE
    except ZqError as error:
        log.error(f"{error.code}: {error.message}")
        return EX_ABORTED
    log.info("stopped", extra={"fields": {"finished": report.finished}})
    if report.returned:
        log.warning(f"{counted(len(report.returned), 'job')} went back unfinished")
    if report.stuck:
        # The interpreter might wait for the remaining handlers, perhaps for ever.
        log.warning(f"{report.stuck} handlers did not end although they were told to")
        logging.shutdown()
        sys.stdout.flush()
        os._exit(EX_ABORTED)
    return EX_ABORTED if report.aborted else 0


def _ready(app: "App", worker: "Worker", concurrency: int) -> None:
    fields = {
        "server": app.backend.url,
        "queues": ",".join(worker.queues),
        "tasks": ",".join(sorted(app.tasks)),
        "concurrency": concurrency,
    }
    log.info("working", extra={"fields": fields})
    systemd.ready()


def _warn_of_queues(app: "App", queues: Sequence[str]) -> None:
    """Say which queues are to be worked on although the app has nothing for them."""
    from zq.client.worker.handlers import Handlers

    known = Handlers(app).queues
    for name in queues:
        if app.core.find is None and name not in known:
            there = meant(name, known) or f": it has {', '.join(known) or 'none at all'}"
            log.warning(f"the app has no tasks for queue {name!r}{there}")


async def _run(app: "App", worker: "Worker", progress_s: float | None) -> "DrainReport":
    async with app:
        telling = asyncio.create_task(_tell_progress(worker, progress_s)) if progress_s else None
        try:
            return await worker.run(handle_signals=True)
        finally:
            if telling is not None:
                telling.cancel()


async def _tell_progress(worker: "Worker", every_s: float) -> None:
    """Log the progress of the worker now and then, if there is any."""
    before = 0
    while True:
        await asyncio.sleep(every_s)
        finished, running = worker.counts
        if finished != before:
            rate = f"{(finished - before) / every_s:.1f}/s"
            fields = {"finished": finished, "running": running, "rate": rate}
            log.info("progress", extra={"fields": fields})
        before = finished


def _reloading() -> int:
    """Run the same command without --reload, again after each change of a Python file."""
    try:
        import watchfiles
    except ModuleNotFoundError:
        raise click.UsageError(
            "--reload needs watchfiles: pip install 'zq-queue[reload]'"
        ) from None
    rest = [word for word in sys.argv[1:] if word != "--reload"]
    os.environ.pop("ZQ_WORKER_RELOAD", None)
    log.info("watching for changes", extra={"fields": {"directory": str(Path.cwd())}})
    watchfiles.run_process(
        Path.cwd(),
        target=_again,
        args=(rest,),
        target_type="function",
        # Of Python's files only: those of a server in this directory change with every job.
        watch_filter=watchfiles.PythonFilter(),
        callback=_tell_changes,
    )
    return 0


def _tell_changes(changes: Iterable[tuple[int, str]]) -> None:
    changed = ", ".join(sorted({os.path.relpath(path) for _, path in changes}))
    log.info("starting again", extra={"fields": {"changed": changed}})


def _again(words: list[str]) -> None:
    os.execv(sys.executable, [sys.executable, "-m", "zq.cli", *words])
