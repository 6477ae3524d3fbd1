"""An address where no server is, and an app that has it."""

from typing import Any

from zq.client.app import App

NOWHERE = "http://127.0.0.1:1"


def dead_app(**options: Any) -> App:
    """An app whose server is not there: nothing may be sent."""
    return App(NOWHERE, **options)
