"""The tick's changes of settings."""

from zq.model.commands import SetQueue
from zq.model.errors import DeadLetterCycle, InvalidRequest
from zq.model.settings import NO_SETTINGS, SettingsPatch, merged
from zq.store.queries import load
from zq.store.work import Work, as_json

QUERIES = load("settings.sql")


def set_queue(work: Work, command: SetQueue) -> object:
    """Replace or patch a queue's settings; they hold from here on in this very transaction."""
    settings = command.settings
    former = work.settings_of(command.queue)
    try:
        if isinstance(settings, SettingsPatch):
            settings = merged(former, settings)
        work.rulebook = work.rulebook.with_settings(command.queue, settings)
    except (InvalidRequest, DeadLetterCycle) as refusal:
        return refusal
    if settings == NO_SETTINGS:
        work.execute(QUERIES["unset_queue"], {"queue": command.queue})
    else:
        row: dict[str, object] = {"queue": command.queue, "settings": as_json(settings)}
        work.execute(QUERIES["set_queue"], row)
    # A gate may have opened.
    work.woken.add(command.queue)
    return settings


def clear_settings(work: Work) -> None:
    """Let nothing be set for any queue."""
    work.rulebook = work.rulebook.without_settings()
    work.execute(QUERIES["clear_settings"])
