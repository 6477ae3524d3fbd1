"""What the verbs of cron do."""

from zq.answers import Asked, VerbAnswers
from zq.engine.turns import Slices
from zq.features.crons import verbs
from zq.features.crons.model import EntryDraft
from zq.features.crons.service_running import Crons
from zq.features.crons.verbs import (
    ENTRY_STEPS,
    CronEntryDocument,
    CronGroupDocument,
    CronNames,
    check_cron,
    decode_entry,
    decode_group,
    decode_group_patch,
    decode_paused,
    drafts_in,
    entry_document,
    group_document,
    group_draft,
)
from zq.verbs import Deleted

ANSWERS = VerbAnswers()


@ANSWERS.to(verbs.LIST)
async def groups(asked: Asked) -> CronNames:
    """The names of the groups."""
    return CronNames(await _crons(asked).groups(asked.reach))


@ANSWERS.to(verbs.CLEAR)
async def clear(asked: Asked) -> Deleted:
    """Delete all groups; with a key for queue prefixes, those that lie completely within."""
    return Deleted(await _crons(asked).clear(asked.reach))


@ANSWERS.to(verbs.GET_GROUP)
async def get_group(asked: Asked) -> CronGroupDocument:
    """A group with its entries, sorted by name."""
    return group_document(*await _crons(asked).group(_group(asked), asked.reach))


@ANSWERS.to(verbs.PUT_GROUP)
async def put_group(asked: Asked) -> CronGroupDocument:
    """Replace a group and all its entries. The answer has the entries in the given order.

    An entry with the same expression and zone as before keeps its next time. A missing `paused`
    keeps the present value. A missing `timezone` is cleared.
    """
    name, sent = _group(asked), decode_group(asked.body, asked.codec, asked.limits)
    drafts, slices = list[EntryDraft](), Slices(asked.services.turns)
    for draft in drafts_in(sent, asked.codec, asked.limits):
        drafts.append(draft)
        await slices.count(ENTRY_STEPS)
    group = group_draft(sent, drafts)
    return group_document(*await _crons(asked).replace_group(name, group, asked.reach))


@ANSWERS.to(verbs.PATCH_GROUP)
async def patch_group(asked: Asked) -> CronGroupDocument:
    """Pause or resume a group, or change the zone for its entries without one.

    The answer has no `entries` if their jobs have more than 64 MiB.
    """
    name, patch = _group(asked), decode_group_patch(asked.body, asked.codec)
    return group_document(*await _crons(asked).change_group(name, patch, asked.reach))


@ANSWERS.to(verbs.DELETE_GROUP)
async def delete_group(asked: Asked) -> None:
    """Delete a group with its entries. The jobs that they have enqueued stay."""
    await _crons(asked).delete_group(_group(asked), asked.reach)


@ANSWERS.to(verbs.ADD_ENTRY)
async def add_entry(asked: Asked) -> CronEntryDocument:
    """Add an entry, and its group if that does not exist."""
    group, draft = _group(asked), decode_entry(asked.body, asked.codec, asked.limits, None)
    return entry_document(await _crons(asked).add_entry(group, draft, asked.reach))


@ANSWERS.to(verbs.GET_ENTRY)
async def get_entry(asked: Asked) -> CronEntryDocument:
    """One entry."""
    return entry_document(await _crons(asked).entry(_group(asked), _entry(asked), asked.reach))


@ANSWERS.to(verbs.PUT_ENTRY)
async def put_entry(asked: Asked) -> CronEntryDocument:
    """Add or replace an entry. The name in the path counts, not the one in the body."""
    group, name = _group(asked), _entry(asked)
    draft = decode_entry(asked.body, asked.codec, asked.limits, name)
    return entry_document(await _crons(asked).put_entry(group, draft, asked.reach))


@ANSWERS.to(verbs.PATCH_ENTRY)
async def patch_entry(asked: Asked) -> CronEntryDocument:
    """Pause or resume an entry. Times that pass during a pause are not made up for."""
    group, name = _group(asked), _entry(asked)
    paused = decode_paused(asked.body, asked.codec)
    return entry_document(await _crons(asked).pause_entry(group, name, paused, asked.reach))


@ANSWERS.to(verbs.DELETE_ENTRY)
async def delete_entry(asked: Asked) -> None:
    """Delete an entry. Its group stays, even when it is empty."""
    await _crons(asked).delete_entry(_group(asked), _entry(asked), asked.reach)


def _crons(asked: Asked) -> Crons:
    return asked.services[Crons]


def _group(asked: Asked) -> str:
    return check_cron(asked.path["group"])


def _entry(asked: Asked) -> str:
    return check_cron(asked.path["entry"])
