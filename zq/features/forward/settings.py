"""The lanes that are declared at the start of the server."""

import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from zq.features.forward.model import LaneRule, check_lane, check_rule
from zq.model.errors import ZqError
from zq.setting import FILE, TEXT, ConfigError, RoomSettings, Rule


class _Rules(msgspec.Struct, forbid_unknown_fields=True):
    lanes: dict[str, LaneRule]


@dataclass(frozen=True, kw_only=True)
class ForwardSettings(RoomSettings):
    """Which queues go to which servers."""

    forward: Annotated[
        str | None,
        Rule(
            TEXT,
            "Queues whose jobs go to another zq: `QUEUE=URL`, or `BEGINNING*=URL`; several with"
            " commas between them. ZQ_TOKEN is the key.",
            unset="none",
        ),
    ] = None
    forward_rules: Annotated[
        Path | None,
        Rule(
            FILE,
            "File of TOML with the lanes to other servers, a table `lanes.NAME` each.",
            unset="none",
        ),
    ] = None

    def check(self, doors: Collection[str]) -> None:
        """Raise ConfigError if a rule is wrong."""
        self.lanes()

    def lanes(self) -> dict[str, LaneRule]:
        """The rules of the declared lanes by name. Raises ConfigError."""
        found: dict[str, LaneRule] = {}
        for text in filter(None, map(str.strip, (self.forward or "").split(","))):
            pattern, sign, url = text.partition("=")
            if not sign:
                raise ConfigError(f"--forward: {text!r} must be QUEUE=URL, or BEGINNING*=URL")
            name = re.sub("[^A-Za-z0-9._:@-]+", "-", pattern).strip("-")[:60] or "all"
            token = os.environ.get("ZQ_TOKEN") or None
            _add(found, "--forward", name, LaneRule((pattern,), url, token))
        if self.forward_rules is not None:
            import tomllib

            place = f"--forward-rules: {self.forward_rules}"
            try:
                text = self.forward_rules.read_text(encoding="utf-8")
                rules = msgspec.convert(tomllib.loads(text), _Rules)
            except (OSError, UnicodeDecodeError, ValueError) as error:
                # The errors of TOML and of msgspec are such, too.
                raise ConfigError(f"{place}: {error}") from None
            for name, rule in rules.lanes.items():
                _add(found, place, name, rule)
        return found


def _add(found: dict[str, LaneRule], place: str, name: str, rule: LaneRule) -> None:
    try:
        check_lane(name)
        check_rule(rule)
    except ZqError as error:
        raise ConfigError(f"{place}: lane {name}: {error.message}") from None
    if name in found:
        raise ConfigError(f"{place}: there are two lanes named {name}: give one another name")
    found[name] = rule


def refused(error: ZqError) -> ConfigError:
    """The error of a start whose declared lanes do not go with those that were made by hand."""
    return ConfigError(
        f"--forward: {error.message} (a lane that `zq forward add` has made can be dropped while"
        " the server runs without --forward and --forward-rules)"
    )


SETTINGS = ForwardSettings
