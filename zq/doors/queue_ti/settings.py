"""The settings of the door for queue-ti."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from zq.setting import DURATION, FILE, INT, SWITCH, ConfigError, RoomSettings, Rule

DOOR = "queue-ti"
"""The name of this door in `--doors`."""

_U32 = 2**32 - 1


@dataclass(frozen=True, kw_only=True)
class QueueTiSettings(RoomSettings):
    """How the door for queue-ti is served, and its defaults."""

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

    def check(self, doors: Collection[str]) -> None:
        if DOOR in doors:
            return
        if self.queue_ti_auth:
            raise ConfigError(
                "--queue-ti-auth is about the door queue-ti, which --doors leaves out: open it, or"
                " have no users"
            )
        if self.grpc_port is not None:
            raise ConfigError(
                "--grpc-port is about the door queue-ti, which --doors leaves out: open it, or give"
                " no port"
            )


SETTINGS = QueueTiSettings
