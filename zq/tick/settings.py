"""Changes of the settings of queues. They apply from now on, also in the same transaction."""

import msgspec

from zq.model.checksums import checksum
from zq.model.commands import SetQueue
from zq.model.errors import Conflict, InvalidRequest
from zq.model.patching import Unset
from zq.model.settings import (
    NO_SETTINGS,
    QueueSettings,
    SettingsPatch,
    checked,
    merged,
    moment_text,
)
from zq.store.api import as_json
from zq.tick.work import UnitOfWork


def set_queue(work: UnitOfWork, command: SetQueue) -> object:
    """Replace or patch a queue's settings. The reply has the new ones."""
    settings = command.settings
    try:
        if isinstance(settings, SettingsPatch):
            settings = merged(work.settings_of(command.queue), settings)
        _check_end(command.settings.paused_until, settings, work.now)
        put_settings(work, command.queue, settings)
    except (InvalidRequest, Conflict) as refusal:
        return refusal
    return settings


def _check_end(given: int | None | Unset, settings: QueueSettings, now: int) -> None:
    """Raises `InvalidRequest` for a pause that would be over already."""
    if isinstance(given, int) and settings.paused and given <= now:
        raise InvalidRequest(
            f"the pause is over by the server's clock: paused_until is {moment_text(given)},"
            f" and it is {moment_text(now)}"
        )


def put_settings(work: UnitOfWork, queue: str, settings: QueueSettings) -> None:
    """Replace a queue's settings. Raises `DeadLetterCycle` or `FanOutChain`."""
    was = work.settings_of(queue)
    work.retimed |= (settings.paused_until, was.paused_until) != (None, None)
    if settings.rate is None and was.rate is not None:
        work.tx.write("forget_rate", queue=queue)
    work.rulebook = work.rulebook.with_settings(queue, settings)
    if settings == NO_SETTINGS:
        work.tx.write("unset_queue", queue=queue)
    else:
        text = as_json(settings)
        work.tx.write("set_queue", queue=queue, settings=text, checksum=checksum(text))
    work.lines.review(queue, was.priority_aging_ms, settings.priority_aging_ms)
    work.has_lines |= bool(work.lines.agings)
    for hold in work.holds:
        hold.review(queue)
    # A gate may have opened.
    work.effects.woken.add(queue)


def end_pauses(work: UnitOfWork, limit: int) -> None:
    """Have the queues deliver again whose pauses are over."""
    for queue in work.tx.names("read_ended_pauses", now=work.now, limit=limit):
        resumed = msgspec.structs.replace(work.settings_of(queue), paused=None)
        put_settings(work, queue, checked(resumed))


def clear_settings(work: UnitOfWork) -> None:
    """Delete the settings of all queues."""
    for queue, aging_ms in work.rulebook.aging.items():
        work.lines.review(queue, aging_ms, None)
    work.rulebook = work.rulebook.without_settings()
    work.tx.write("clear_settings")
    work.tx.write("clear_rates")
