"""The settings of a server, in one table.

A field of `Settings` says all there is to say about a setting: default, kind, limits, meaning.
Flags, variables, `--help` and the table in README.md are derived from it (`python -m zq.config`
prints that table).

The value of a setting is the flag's, else that of `ZQ_…`, else that of `ZIZQ_…`, else the default.
A variable that is empty counts as unset.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args, get_type_hints

from zq.kinds import (
    CHOICE,
    DURATION,
    FILE,
    FLOAT,
    HOSTS,
    INT,
    ORIGINS,
    PATH,
    SIZE,
    SWITCH,
    TEXT,
    Kind,
)

LogLevel = Literal["trace", "debug", "info", "warn", "error"]
LogFormat = Literal["pretty", "compact", "json"]
AccessLog = Literal["off", "sampled", "all"]
CommitMode = Literal["buffered", "fsync"]
Http2Engine = Literal["h2", "zttp"]

_U32 = 2**32 - 1
# Milliseconds and bytes stay exact as floats, and a time far ahead still fits SQLite's integers.
_LARGEST = 2**53 - 1


ZIZQ = "ZIZQ_"
"""Begins the names of Zizq's variables. A bare number in one is milliseconds, as Zizq has it."""


class ConfigError(ValueError):
    """A setting that cannot be used. The text names the flag or variable, and the remedy."""


@dataclass(frozen=True)
class Rule:
    """What a setting means and which values it takes."""

    kind: Kind
    help: str
    _: KW_ONLY
    choices: tuple[str, ...] = ()
    low: float = 0
    high: float = _LARGEST
    short: str = ""
    unset: str = ""  # what a default of None means


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One row of the table."""

    name: str
    default: Any
    rule: Rule

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return "ZQ_" + self.name.upper()

    @property
    def default_text(self) -> str:
        return self.rule.unset or self.rule.kind.show(self.default)

    def given(
        self, flags: Mapping[str, str | None], environ: Mapping[str, str]
    ) -> tuple[str, str] | None:
        """(the flag or variable that sets it, its text), or None: the default holds."""
        flag = flags.get(self.name)
        if flag is not None:
            return self.flag, flag
        return variable_given(self.variable, environ)

    def read(self, text: str, source: str) -> Any:
        """The value of `text`, which `source` (a flag or a variable) gave. Raises ConfigError."""
        kind = self.rule.kind
        if kind is DURATION and source.startswith(ZIZQ) and text.strip().isdecimal():
            text += "ms"
        try:
            value = kind.parse(text)
        except ValueError:
            raise ConfigError(f'{source}: "{text}" is no {kind.noun}: {kind.remedy}') from None
        self.check(value, source)
        return value

    def check(self, value: Any, source: str) -> None:
        """Raises ConfigError if `value` is none of the choices or out of range."""
        rule = self.rule
        if value is None and rule.unset:
            return
        if rule.choices and value not in rule.choices:
            *others, last = rule.choices
            raise ConfigError(
                f'{source}: "{value}" is no choice: write {", ".join(others)} or {last}'
            )
        if isinstance(value, int | float) and not rule.low <= value <= rule.high:
            show = rule.kind.show
            bounds = f"from {show(rule.low)} to {show(rule.high)}"
            if value < rule.low and rule.high == _LARGEST:
                bounds = f"of at least {show(rule.low)}"
            raise ConfigError(
                f"{source}: {show(value)} is out of range: write a {rule.kind.noun} {bounds}"
            )


def variable_given(variable: str, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """(name, text) of a `ZQ_…` variable or, where that is unset, of its `ZIZQ_…` twin."""
    for name in (variable, ZIZQ + variable.removeprefix("ZQ_")):
        if environ.get(name):
            return name, environ[name]
    return None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a server is told at its start. A value out of range raises ConfigError."""

    root_dir: Annotated[
        Path, Rule(PATH, "Directory of the data. One server at a time owns it.")
    ] = Path("zq-root")
    host: Annotated[str, Rule(TEXT, "Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Rule(INT, "Port to listen on; 0 takes any free one.", high=65_535)] = 7890
    tls_cert: Annotated[
        Path | None,
        Rule(FILE, "Certificate chain (PEM), for TLS. Read again on SIGHUP.", unset="no TLS"),
    ] = None
    tls_key: Annotated[Path | None, Rule(FILE, "The certificate's key (PEM).", unset="no TLS")] = (
        None
    )
    tls_client_ca: Annotated[
        Path | None,
        Rule(FILE, "CA (PEM) whose certificate every client must show.", unset="no such demand"),
    ] = None
    keys: Annotated[
        Path | None,
        Rule(
            FILE,
            "File of access keys (see Keys); with it, every request needs one.",
            unset="none: whoever reaches the port may do everything",
        ),
    ] = None
    allow_host: Annotated[
        tuple[str, ...] | None,
        Rule(
            HOSTS,
            "Further names or addresses by which clients reach the server.",
            unset="its own address and loopback names",
        ),
    ] = None
    allow_origin: Annotated[
        tuple[str, ...] | None,
        Rule(
            ORIGINS,
            "Origins of further web sites whose pages may send requests.",
            unset="its own pages only",
        ),
    ] = None
    insecure: Annotated[
        bool,
        Rule(SWITCH, "Listen on other than loopback addresses although there are no keys."),
    ] = False
    log_level: Annotated[
        LogLevel, Rule(CHOICE, "Least severe log lines to write.", choices=get_args(LogLevel))
    ] = "info"
    log_format: Annotated[
        LogFormat | None,
        Rule(
            CHOICE,
            "Form of the log on standard output.",
            choices=get_args(LogFormat),
            unset="pretty on a terminal, else json",
        ),
    ] = None
    access_log: Annotated[
        AccessLog,
        Rule(CHOICE, "Requests to log: none, a sample or all.", choices=get_args(AccessLog)),
    ] = "off"
    heartbeat_interval: Annotated[
        int, Rule(DURATION, "Longest silence on a stream before a heartbeat is sent.", low=1)
    ] = 3_000
    global_in_flight_limit: Annotated[
        int,
        Rule(INT, "Most jobs in flight over all workers; 0 is no limit.", high=_U32, short="-l"),
    ] = 65_536
    default_retry_limit: Annotated[
        int, Rule(INT, "Retries of a job that sets no limit of its own.", high=_U32)
    ] = 25
    default_backoff_exponent: Annotated[
        float, Rule(FLOAT, "Exponent of the back-off: attempts^exponent seconds.")
    ] = 4.0
    default_backoff_base: Annotated[
        int, Rule(DURATION, "Fixed part of the back-off.", high=_U32)
    ] = 15_000
    default_backoff_jitter: Annotated[
        int, Rule(DURATION, "Most random delay added to the back-off per attempt.", high=_U32)
    ] = 30_000
    default_completed_job_retention: Annotated[
        int, Rule(DURATION, "How long completed jobs are kept; 0 deletes them at once.")
    ] = 0
    default_dead_job_retention: Annotated[
        int, Rule(DURATION, "How long dead jobs are kept; 0 deletes them at once.")
    ] = 604_800_000
    history: Annotated[
        int,
        Rule(DURATION, "How long a record of each finished attempt is kept; 0 writes none."),
    ] = 0
    history_max_records: Annotated[
        int, Rule(INT, "Most records that the history keeps; the oldest go first.", low=1)
    ] = 100_000_000
    history_max_bytes: Annotated[
        int, Rule(SIZE, "Most bytes that they may take, about 110 each.", low=16 * 2**20)
    ] = 2**30
    device: Annotated[
        str | None,
        Rule(TEXT, "What this server is called in its history.", unset="the host's name"),
    ] = None
    reaper_check_interval: Annotated[
        int, Rule(DURATION, "Longest time between two looks for jobs to delete.", low=1)
    ] = 30_000
    default_commit_mode: Annotated[
        CommitMode,
        Rule(
            CHOICE,
            "What an answer waits for: fsync, the disk; buffered, the operating system.",
            choices=get_args(CommitMode),
        ),
    ] = "fsync"
    enqueue_commit_mode: Annotated[
        CommitMode | None,
        Rule(
            CHOICE,
            "The same for enqueues alone.",
            choices=get_args(CommitMode),
            unset="that of `--default-commit-mode`",
        ),
    ] = None
    cache_size: Annotated[int, Rule(SIZE, "Database pages kept in memory.", low=64 * 2**10)] = (
        64 * 2**20
    )
    max_body: Annotated[int, Rule(SIZE, "Largest request body; a larger one gets 413.", low=1)] = (
        64 * 2**20
    )
    max_result: Annotated[
        int, Rule(SIZE, "Largest result of a job; a larger one gets 413.", low=1)
    ] = 2**20
    max_payload: Annotated[
        int, Rule(SIZE, "Largest payload of a job, as JSON; a larger one gets 413.", low=1)
    ] = 8 * 2**20
    max_bulk_items: Annotated[
        int, Rule(INT, "Most jobs, or ids, in one bulk request; more get 413.", low=1)
    ] = 10_000
    http2_engine: Annotated[
        Http2Engine,
        Rule(
            CHOICE,
            "Library that reads and writes HTTP/2; zttp is fast, young and an extra (see HTTP/2).",
            choices=get_args(Http2Engine),
        ),
    ] = "h2"
    max_connections: Annotated[
        int, Rule(INT, "Most open connections; further ones get 503 and are closed.", low=1)
    ] = 16_384
    max_connections_per_peer: Annotated[
        int, Rule(INT, "The same per address (IPv6: per /64 network); 0 is no limit.")
    ] = 4_096
    max_streams_per_peer: Annotated[
        int,
        Rule(
            INT,
            "Most take streams, and as many event streams, per address; further ones get 503; 0 is"
            " no limit.",
        ),
    ] = 4_096
    header_timeout: Annotated[
        int, Rule(DURATION, "How long a new connection, or a begun header, may take.", low=1)
    ] = 10_000
    body_timeout: Annotated[
        int,
        Rule(DURATION, "How long a body may take, and a second more for each KiB of it.", low=1),
    ] = 30_000
    max_inbox_jobs: Annotated[
        int,
        Rule(
            INT,
            "Jobs that may wait to be stored before enqueues get 503; bodies over 2 KiB wait while"
            " there are half as many.",
            low=1,
        ),
    ] = 100_000
    max_inbox_bytes: Annotated[
        int,
        Rule(
            SIZE,
            "Request bodies held in memory before enqueues get 503; at least `--max-body`.",
            low=1,
        ),
    ] = 256 * 2**20
    max_answer_bytes: Annotated[
        int,
        Rule(
            SIZE,
            "Answers held in memory until their clients have taken them; further ones over 64 KiB"
            " get 503.",
            low=1,
        ),
    ] = 256 * 2**20
    answer_timeout: Annotated[
        int,
        Rule(
            DURATION,
            "How long a client may take nothing of its answer before it is cut off.",
            low=1,
        ),
    ] = 60_000
    disk_reserve: Annotated[
        int, Rule(SIZE, "Free disk space kept for acknowledgements: below it enqueues get 507.")
    ] = 64 * 2**20
    max_wal: Annotated[
        int,
        Rule(
            SIZE,
            "Size of the write-ahead log beyond which enqueues get 503, where a reader pins it.",
            low=8 * 2**20,
        ),
    ] = 2**30
    read_timeout: Annotated[
        int, Rule(DURATION, "Longest time a listing or count may take, and wait.", low=1)
    ] = 5_000
    filter_timeout: Annotated[
        int, Rule(DURATION, "Longest time a jq filter may take, its wait included.", low=1)
    ] = 2_000
    max_sweeps: Annotated[
        int, Rule(INT, "Changes by filter that may run at a time; further ones get 429.", low=1)
    ] = 16
    stall_timeout: Annotated[
        int, Rule(DURATION, "How long a worker that reads nothing keeps its jobs.", low=1)
    ] = 600_000
    drain: Annotated[
        int, Rule(DURATION, "How long a stopping server waits for acknowledgements.")
    ] = 2_000

    def __post_init__(self) -> None:
        for setting in SETTINGS:
            setting.check(getattr(self, setting.name), setting.flag)
        self._check_tls()
        if self.max_inbox_bytes < self.max_body:
            # Such a body would get 503, "try again", for ever.
            raise ConfigError(
                f"--max-inbox-bytes: {SIZE.show(self.max_inbox_bytes)} cannot hold a body of "
                f"--max-body ({SIZE.show(self.max_body)}): raise the one or lower the other"
            )

    def _check_tls(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            given, missing = ("--tls-cert", "--tls-key")
            if self.tls_cert is None:
                given, missing = missing, given
            raise ConfigError(f"{given} needs {missing}: give both, or neither for no TLS")
        if self.tls_client_ca is not None and self.tls_cert is None:
            raise ConfigError("--tls-client-ca needs TLS: give --tls-cert and --tls-key too")

    @classmethod
    def load(cls, flags: Mapping[str, str | None], environ: Mapping[str, str]) -> Self:
        """The settings of a command line. `flags` maps field names to what was typed, or None.

        Raises ConfigError for the first value that cannot be used.
        """
        values = {}
        for setting in SETTINGS:
            if given := setting.given(flags, environ):
                source, text = given
                values[setting.name] = setting.read(text, source)
        return cls(**values)


def _table() -> tuple[Setting, ...]:
    hints = get_type_hints(Settings, include_extras=True)
    return tuple(
        Setting(name=field.name, default=field.default, rule=hints[field.name].__metadata__[0])
        for field in fields(Settings)
    )


SETTINGS = _table()


def markdown() -> str:
    """The table of README.md."""
    rows = ["| Flag | Variable | Default | Meaning |", "|---|---|---|---|"]
    for setting in SETTINGS:
        rule = setting.rule
        flag = f"`{setting.flag}`" + (f", `{rule.short}`" if rule.short else "")
        default = rule.unset or f"`{setting.default_text}`"
        choices = f" One of `{'`, `'.join(rule.choices)}`." if rule.choices else ""
        rows.append(f"| {flag} | `{setting.variable}` | {default} | {rule.help}{choices} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(markdown())
