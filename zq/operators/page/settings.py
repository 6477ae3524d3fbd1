"""The settings of the operators' page."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args
from urllib.parse import urlsplit

from zq.setting import CHOICE, PATTERN, PUBLIC_URL, SWITCH, WORD, ConfigError, RoomSettings, Rule

PREFIX = "/ui"
"""The path of the page."""

PagePlace = Literal["admin", "primary", "off"]


@dataclass(frozen=True, kw_only=True)
class PageSettings(RoomSettings):
    """The address of the operators' page, and the contents that it shows."""

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

    @property
    def prefixes(self) -> Sequence[str]:
        """Where the page is: a proxy may strip the path of the public URL, or keep it."""
        public = urlsplit(self.public_url or "/").path.removesuffix("/") + PREFIX
        return list(dict.fromkeys((PREFIX, public)))

    def check(self, doors: Collection[str]) -> None:
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


SETTINGS = PageSettings
