"""The settings of a server, in one table.

A field of `Settings` has everything about a setting: default, kind, limits, meaning. Flags,
variables, `--help` and the table in docs/configuration.md are derived from it (`python -m
zq.config` prints that table). A room has its own settings in its `settings.py`; they come last.

The value of a setting comes from the flag, or else from `ZQ_…`, or else from `ZIZQ_…`, or else it
is the default. An empty variable counts as unset.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from zq.rooms import parts
from zq.setting import (
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
    ConfigError,
    RoomSettings,
    Rule,
    Setting,
    names_of,
    table_of,
)

LogLevel = Literal["trace", "debug", "info", "warn", "error"]
LogFormat = Literal["pretty", "compact", "json"]
LogRotation = Literal["daily", "hourly", "never"]
AccessLog = Literal["off", "sampled", "all"]
OnDamage = Literal["refuse", "salvage"]
CommitMode = Literal["buffered", "fsync"]
Http2Engine = Literal["h2", "zttp"]
EventLoop = Literal["uvloop", "asyncio"]
Preset = Literal["edge"]
TimeOff = Literal["counts", "pauses"]

PRESETS: Mapping[Preset, Mapping[str, str]] = {
    "edge": {
        "page_size": "1KiB",
        "upkeep_interval": "1m",
        "cache_size": "4MiB",
        "event_loop": "asyncio",
        "no_admin": "yes",
        "doors": "none",
        "max_connections": "256",
        "max_body": "8MiB",
        "max_inbox_bytes": "16MiB",
        "max_answer_bytes": "16MiB",
        "max_wal": "64MiB",
        "disk_reserve": "16MiB",
    }
}
"""The settings of each preset, by name, in their written form. What is given otherwise wins."""

_U32 = 2**32 - 1

R = TypeVar("R", bound=RoomSettings)

DOORS = tuple(parts("settings", "DOOR", str))
"""The names of the doors that rooms bring."""

_OF_ROOMS: tuple[type[RoomSettings], ...] = tuple(parts("settings", "SETTINGS", type))


def _flags_of(preset: Preset) -> str:
    flags = (f"--{name} {text}" for name, text in PRESETS[preset].items())
    return ", ".join(f"`{flag.removesuffix(' yes').replace('_', '-')}`" for flag in flags)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a server's start. A value out of range raises ConfigError."""

    preset: Annotated[
        Preset | None,
        Rule(
            CHOICE,
            f"Defaults of another kind: those for a small device are {_flags_of('edge')}.",
            choices=get_args(Preset),
            unset="those of this table",
        ),
    ] = None
    root_dir: Annotated[
        Path, Rule(PATH, "Directory for the data. One server at a time owns it.")
    ] = Path("zq-root")
    store: Annotated[
        str | None,
        Rule(
            TEXT,
            "Database for the data in place of a directory: postgresql://… (experimental).",
            unset="the directory",
        ),
    ] = None
    servers: Annotated[
        int,
        Rule(
            INT,
            "Servers that may share the database of --store (experimental); 1 keeps others out.",
            low=1,
            high=16,
        ),
    ] = 1
    host: Annotated[str, Rule(TEXT, "Address to listen on; localhost means 127.0.0.1 and ::1.")] = (
        "localhost"
    )
    port: Annotated[int, Rule(INT, "Port to listen on; 0 means any free one.", high=65_535)] = 7890
    tls_cert: Annotated[
        Path | None,
        Rule(FILE, "Certificate chain (PEM) for TLS. It is read again on SIGHUP.", unset="no TLS"),
    ] = None
    tls_key: Annotated[Path | None, Rule(FILE, "Key of the certificate (PEM).", unset="no TLS")] = (
        None
    )
    tls_client_ca: Annotated[
        Path | None,
        Rule(FILE, "CA (PEM) whose certificate every client must show.", unset="none is required"),
    ] = None
    admin_host: Annotated[
        str, Rule(TEXT, "Address of the admin listener; localhost means 127.0.0.1 and ::1.")
    ] = "localhost"
    admin_port: Annotated[
        int | None,
        Rule(
            INT,
            "Port of the admin listener; 0 means any free one.",
            high=65_535,
            unset="8901, and no admin listener where that port is taken",
        ),
    ] = None
    no_admin: Annotated[bool, Rule(SWITCH, "Have no admin listener.")] = False
    admin_tls_cert: Annotated[
        Path | None,
        Rule(FILE, "As `--tls-cert`, for the admin listener.", unset="no TLS"),
    ] = None
    admin_tls_key: Annotated[
        Path | None, Rule(FILE, "Key of the admin listener's certificate (PEM).", unset="no TLS")
    ] = None
    admin_tls_client_ca: Annotated[
        Path | None,
        Rule(FILE, "As `--tls-client-ca`, for the admin listener.", unset="none is required"),
    ] = None
    keys: Annotated[
        Path | None,
        Rule(
            FILE,
            "File of access keys: `zq keys` makes it. With it, every request needs a key.",
            unset="none: everyone who reaches the port may do everything",
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
        Rule(SWITCH, "Listen on addresses other than loopback even without keys."),
    ] = False
    log_level: Annotated[
        LogLevel, Rule(CHOICE, "Lowest severity of log lines to write.", choices=get_args(LogLevel))
    ] = "info"
    log_format: Annotated[
        LogFormat | None,
        Rule(
            CHOICE,
            "Format of the log on standard output.",
            choices=get_args(LogFormat),
            unset="pretty on a terminal, json otherwise",
        ),
    ] = None
    log_to_disk: Annotated[
        bool, Rule(SWITCH, "Write the log to files as well, where `--log-dir` says.")
    ] = False
    log_dir: Annotated[
        Path | None,
        Rule(
            PATH,
            "Directory for files of the log; it turns `--log-to-disk` on.",
            unset="`log` in the directory for the data",
        ),
    ] = None
    log_rotation: Annotated[
        LogRotation,
        Rule(
            CHOICE,
            "How often another file of the log is begun, in UTC.",
            choices=get_args(LogRotation),
        ),
    ] = "daily"
    log_max_size: Annotated[
        int, Rule(SIZE, "Size at which another file of the log is begun.", low=2**20)
    ] = 100 * 10**6
    log_max_files: Annotated[
        int, Rule(INT, "Older files of the log that are kept.", low=1, high=10_000)
    ] = 10
    access_log: Annotated[
        AccessLog,
        Rule(CHOICE, "Which requests to log: none, a sample or all.", choices=get_args(AccessLog)),
    ] = "off"
    event_loop: Annotated[
        EventLoop,
        Rule(
            CHOICE,
            "What runs the server: uvloop is faster, where it is installed, and takes 2 MB more.",
            choices=get_args(EventLoop),
        ),
    ] = "uvloop"
    heartbeat_interval: Annotated[
        int, Rule(DURATION, "Longest silence on a stream before a heartbeat is sent.", low=1)
    ] = 3_000
    global_in_flight_limit: Annotated[
        int,
        Rule(INT, "Most jobs in flight over all workers; 0 means no limit.", high=_U32, short="-l"),
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
    time_off: Annotated[
        TimeOff,
        Rule(
            CHOICE,
            "What the time in which the machine was off does to durations, such as times to live:"
            " it counts, by the clock at the next boot, or they pause.",
            choices=get_args(TimeOff),
        ),
    ] = "counts"
    history: Annotated[
        int,
        Rule(DURATION, "How long a record of each finished attempt is kept; 0 writes none."),
    ] = 0
    history_max_records: Annotated[
        int, Rule(INT, "Most records that the history keeps; the oldest go first.", low=1)
    ] = 100_000_000
    history_max_bytes: Annotated[
        int,
        Rule(SIZE, "Most bytes that the history may take, about 110 per record.", low=16 * 2**20),
    ] = 2**30
    device: Annotated[
        str | None,
        Rule(TEXT, "Name of this server in its history and on its page.", unset="the host's name"),
    ] = None
    reaper_check_interval: Annotated[
        int, Rule(DURATION, "Longest time between two searches for jobs to delete.", low=1)
    ] = 30_000
    default_commit_mode: Annotated[
        CommitMode,
        Rule(
            CHOICE,
            "What an answer waits for: the disk (fsync) or the operating system (buffered).",
            choices=get_args(CommitMode),
        ),
    ] = "fsync"
    enqueue_commit_mode: Annotated[
        CommitMode | None,
        Rule(
            CHOICE,
            "What the answer to an enqueue waits for: the disk (fsync) or the operating system"
            " (buffered).",
            choices=get_args(CommitMode),
            unset="that of `--default-commit-mode`",
        ),
    ] = None
    flush_interval: Annotated[
        int,
        Rule(
            DURATION,
            "Gather the changes of this time into one flush, which answers do not wait for: a power"
            " cut may take them back; 0 flushes as the commit modes say.",
            high=60_000,
        ),
    ] = 0
    upkeep_interval: Annotated[
        int,
        Rule(
            DURATION,
            "How long a server must be idle before it copies a log that has not grown much into the"
            " database, and gives free space back.",
            low=1_000,
            high=3_600_000,
        ),
    ] = 1_000
    cache_size: Annotated[int, Rule(SIZE, "Memory for database pages.", low=64 * 2**10)] = (
        64 * 2**20
    )
    page_size: Annotated[
        int,
        Rule(
            SIZE,
            "Pages of a new database, a power of two: small ones wear a card less, and cost bulks"
            " more.",
            low=512,
            high=65_536,
        ),
    ] = 4096
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
    max_bulk_bytes: Annotated[
        int,
        Rule(
            SIZE,
            "Most bytes of payloads in one bulk request, which is stored in one go while others"
            " wait; more get 413.",
            low=1,
        ),
    ] = 16 * 2**20
    max_values: Annotated[
        int, Rule(INT, "Most values (texts, numbers, …) in a body; more get 413.", low=1_000)
    ] = 1_000_000
    http2_engine: Annotated[
        Http2Engine,
        Rule(
            CHOICE,
            "Library for HTTP/2; zttp is faster but experimental, and needs the extra zttp.",
            choices=get_args(Http2Engine),
        ),
    ] = "h2"
    max_connections: Annotated[
        int, Rule(INT, "Most open connections; further ones get 503 and are closed.", low=1)
    ] = 16_384
    max_connections_per_peer: Annotated[
        int,
        Rule(
            INT,
            "Most open connections of one address (IPv6: of one /64 network); 0 means no limit.",
        ),
    ] = 4_096
    max_streams_per_peer: Annotated[
        int,
        Rule(
            INT,
            "Most take streams, and as many event streams, per address; further ones get 503; 0"
            " means no limit.",
        ),
    ] = 4_096
    header_timeout: Annotated[
        int, Rule(DURATION, "How long a new connection, or a begun header, may take.", low=1)
    ] = 10_000
    body_timeout: Annotated[
        int,
        Rule(DURATION, "How long a body may take, plus a second for each KiB.", low=1),
    ] = 30_000
    max_inbox_jobs: Annotated[
        int,
        Rule(
            INT,
            "Jobs that may wait to be stored before enqueues get 503; from half of that, bodies"
            " over 2 KiB wait.",
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
            "Answers held in memory until clients have read them; further ones over 64 KiB get"
            " 503.",
            low=1,
        ),
    ] = 256 * 2**20
    answer_timeout: Annotated[
        int,
        Rule(
            DURATION,
            "How long a client may read nothing of its answer before it is disconnected.",
            low=1,
        ),
    ] = 60_000
    disk_reserve: Annotated[
        int, Rule(SIZE, "Free disk space kept for acknowledgements: below it enqueues get 507.")
    ] = 64 * 2**20
    on_damage: Annotated[
        OnDamage,
        Rule(
            CHOICE,
            "What a start does with a damaged database: refuse it, or keep it aside and salvage"
            " what can be read.",
            choices=get_args(OnDamage),
        ),
    ] = "refuse"
    max_wal: Annotated[
        int,
        Rule(
            SIZE,
            "Size of the write-ahead log beyond which enqueues get 503, if a reader pins it.",
            low=8 * 2**20,
        ),
    ] = 2**30
    read_timeout: Annotated[
        int, Rule(DURATION, "Longest time a listing or count may take, including its wait.", low=1)
    ] = 5_000
    filter_timeout: Annotated[
        int, Rule(DURATION, "Longest time a jq filter may take, including its wait.", low=1)
    ] = 2_000
    max_budgets: Annotated[
        int, Rule(INT, "Most budgets; a further one is refused with 422.", low=1)
    ] = 8192
    stall_timeout: Annotated[
        int, Rule(DURATION, "How long a worker that reads nothing keeps its jobs.", low=1)
    ] = 600_000
    drain: Annotated[
        int, Rule(DURATION, "How long a stopping server waits for acknowledgements.")
    ] = 2_000
    doors: Annotated[
        tuple[str, ...],
        Rule(
            names_of(DOORS),
            f"The doors beside the native API: `{'`, `'.join(DOORS)}`, or `none` of them.",
        ),
    ] = DOORS
    rooms: tuple[RoomSettings, ...] = ()
    """The settings of rooms. Those of rooms that are left out are at their defaults."""

    def __getitem__(self, kind: type[R]) -> R:
        """The settings of one room, by their class."""
        for each in self.rooms:
            if isinstance(each, kind):
                return each
        raise KeyError(kind)

    def rows(self) -> Iterator[tuple[Setting, Any]]:
        """Each setting with its value, in the order of the table."""
        owners: tuple[Settings | RoomSettings, ...] = (self, *self.rooms)
        for owner in owners:
            kind: type = type(owner)
            for setting in table_of(kind):
                yield setting, getattr(owner, setting.name)

    @property
    def log_directory(self) -> Path | None:
        """The directory of the log; None if it is not written to files."""
        if self.log_dir is None and self.log_to_disk:
            return self.root_dir / "log"
        return self.log_dir

    def __post_init__(self) -> None:
        given = {type(each): each for each in self.rooms}
        rooms = tuple(given.get(kind) or kind() for kind in _OF_ROOMS)
        object.__setattr__(self, "rooms", rooms)
        for setting, value in self.rows():
            setting.check(value, setting.flag)
        if str(self.root_dir).startswith(("postgresql:/", "postgres:/")):
            raise ConfigError("--root-dir: this is the address of a database: give it by --store")
        _check_tls("--", self.tls_cert, self.tls_key, self.tls_client_ca)
        admin = (self.admin_tls_cert, self.admin_tls_key, self.admin_tls_client_ca)
        _check_tls("--admin-", *admin)
        if self.page_size.bit_count() != 1:
            raise ConfigError(
                f"--page-size: {self.page_size} is no power of two: give 1KiB or 4KiB"
            )
        if self.max_inbox_bytes < self.max_body:
            # Such a body would always get 503, "try again".
            raise ConfigError(
                f"--max-inbox-bytes: {SIZE.show(self.max_inbox_bytes)} cannot hold a body of "
                f"--max-body ({SIZE.show(self.max_body)}): raise the one or lower the other"
            )
        for room in rooms:
            room.check(self.doors)

    @classmethod
    def of(cls, **values: Any) -> Self:
        """The settings with these values, by the names of the table.

        Raises ConfigError for the first value that cannot be used.
        """
        if preset := values.get("preset"):
            values = {**_of_preset(preset), **values}
        rooms = []
        for kind in _OF_ROOMS:
            names = [field.name for field in fields(kind) if field.name in values]
            rooms.append(kind(**{name: values.pop(name) for name in names}))
        return cls(**values, rooms=tuple(rooms))

    @classmethod
    def load(cls, flags: Mapping[str, str | None], environ: Mapping[str, str]) -> Self:
        """The settings of a command line. `flags` maps field names to the user's text, or None.

        Raises ConfigError for the first value that cannot be used.
        """
        values = {}
        for setting in SETTINGS:
            if given := setting.given(flags, environ):
                source, text = given
                values[setting.name] = setting.read(text, source)
        return cls.of(**values)


def _of_preset(preset: Preset) -> dict[str, Any]:
    given = PRESETS[preset]
    return {
        each.name: each.read(given[each.name], each.flag) for each in SETTINGS if each.name in given
    }


def _check_tls(prefix: str, cert: Path | None, key: Path | None, client_ca: Path | None) -> None:
    if (cert is None) != (key is None):
        given, missing = f"{prefix}tls-cert", f"{prefix}tls-key"
        if cert is None:
            given, missing = missing, given
        raise ConfigError(f"{given} needs {missing}: give both, or neither to serve without TLS")
    if client_ca is not None and cert is None:
        raise ConfigError(
            f"{prefix}tls-client-ca needs TLS: give {prefix}tls-cert and {prefix}tls-key too"
        )


_OWNERS: tuple[type, ...] = (Settings, *_OF_ROOMS)

SETTINGS = tuple(setting for kind in _OWNERS for setting in table_of(kind))


def markdown() -> str:
    """The table of docs/configuration.md."""
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
