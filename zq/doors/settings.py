"""The settings of doors other than Zizq's: which are open, and their defaults."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

from zq.setting import (
    CHOICE,
    DOORS,
    DURATION,
    FILE,
    INT,
    PATTERN,
    PUBLIC_URL,
    SCHEDULE,
    SWITCH,
    WORD,
    ConfigError,
    Rule,
)

PagePlace = Literal["admin", "primary", "off"]

_U32 = 2**32 - 1


@dataclass(frozen=True, kw_only=True)
class DoorSettings:
    """The settings of a server's doors. They come last in the table of settings."""

    doors: Annotated[
        tuple[str, ...],
        Rule(DOORS, "The doors beside the native API: `topics`, `queue-ti`, or `none` of them."),
    ] = ("topics", "queue-ti")
    topics_gzip: Annotated[
        bool, Rule(SWITCH, "Take and give compressed bodies (gzip) in the API of topics.")
    ] = False
    queue_ti_max_retries: Annotated[
        int,
        Rule(
            INT, "How often a message of queue-ti may fail, if its topic does not say.", high=_U32
        ),
    ] = 3
    queue_ti_dlq_threshold: Annotated[
        int,
        Rule(
            INT,
            "Failures after which a message of queue-ti moves to its dead-letter topic; 0 means"
            " never.",
            high=_U32,
        ),
    ] = 3
    queue_ti_message_ttl: Annotated[
        int,
        Rule(DURATION, "How long a message of queue-ti may wait; 0 means for ever."),
    ] = 86_400_000
    queue_ti_delete_reaper_schedule: Annotated[
        str,
        Rule(
            SCHEDULE,
            "When expired jobs are deleted before their retention is over, such as `0 3 * * *` or"
            " `@every 1h`. A schedule that was set over HTTP comes first.",
        ),
    ] = ""
    queue_ti_require_topic_registration: Annotated[
        bool,
        Rule(SWITCH, "Refuse messages of queue-ti to topics without overrides or settings."),
    ] = False
    queue_ti_auth: Annotated[
        bool,
        Rule(SWITCH, "Have users log in to the API of queue-ti, and check what they are granted."),
    ] = False
    queue_ti_admin: Annotated[
        Path | None,
        Rule(
            FILE,
            "File with `name:password` of the administrator who is made if there are no users.",
            unset="none is made",
        ),
    ] = None
    queue_ti_secret: Annotated[
        Path | None,
        Rule(
            FILE,
            "File with the secret that signs tokens, of 32 bytes or more.",
            unset="a random one, so that tokens end with the server",
        ),
    ] = None
    grpc_port: Annotated[
        int | None,
        Rule(
            INT,
            "Port for queue-ti's gRPC, on the address of `--host`; 0 means any free one, 50051 is"
            " the usual one.",
            high=65_535,
            unset="no gRPC",
        ),
    ] = None
    grpc_window: Annotated[
        int,
        Rule(
            INT,
            "Most messages of one subscription over gRPC that are not acknowledged yet.",
            low=1,
            high=1_000,
        ),
    ] = 32
    ui: Annotated[
        PagePlace,
        Rule(
            CHOICE,
            "Which listener has the operators' page, at `/ui/`.",
            choices=get_args(PagePlace),
        ),
    ] = "admin"
    ui_environment: Annotated[
        str | None,
        Rule(
            WORD,
            "What this server is for, such as `production` or `staging`: a badge at the head of the"
            " operators' page.",
            unset="no badge",
        ),
    ] = None
    ui_read_only: Annotated[
        bool, Rule(SWITCH, "Let nobody change anything through the operators' page.")
    ] = False
    ui_mask: Annotated[
        str | None,
        Rule(
            PATTERN,
            "Hide fields of payloads and results whose names match, and what errors say of them,"
            " from the operators' page.",
            unset="nothing is hidden",
        ),
    ] = None
    public_url: Annotated[
        str | None,
        Rule(
            PUBLIC_URL,
            "Where a proxy shows the listener that has the operators' page.",
            unset="the address of the listener",
        ),
    ] = None

    def check_doors(self) -> None:
        """Raise ConfigError if settings are about a door that is not there."""
        about_the_page = {
            "--public-url": self.public_url,
            "--ui-mask": self.ui_mask,
            "--ui-environment": self.ui_environment,
        }
        flag = next((flag for flag, given in about_the_page.items() if given), None)
        if self.ui == "off" and flag:
            raise ConfigError(
                f"{flag} is about the operators' page, which --ui off leaves out: open it, or leave"
                f" {flag} out"
            )
        if self.queue_ti_auth and "queue-ti" not in self.doors:
            raise ConfigError(
                "--queue-ti-auth is about the door queue-ti, which --doors leaves out: open it, or"
                " have no users"
            )
        if self.grpc_port is not None and "queue-ti" not in self.doors:
            raise ConfigError(
                "--grpc-port is about the door queue-ti, which --doors leaves out: open it, or give"
                " no port"
            )
