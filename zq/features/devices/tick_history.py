"""The history of devices: its records have the devices' numbers, by which each is stored once."""

from collections.abc import Sequence

from msgspec.structs import replace

from zq.features.devices.commands import AppendHistory
from zq.features.history.tick import append_forwarded
from zq.features.producers.tick_book import ProducerBook
from zq.model.errors import ZqError
from zq.tick.work import UnitOfWork


def append_history(work: UnitOfWork, commands: Sequence[AppendHistory]) -> list[object]:
    """Append the records of devices that are new here.

    Their numbers may have gaps, since a device forgets records, too. Nothing is sent before what is
    ahead of it was answered, so a gap stays one.
    """
    book = ProducerBook(work, [command.mark for command in commands])
    replies: list[object] = []
    for command in commands:
        mark = command.mark
        verdict = book.judge(replace(mark, seq=1), 0)
        if isinstance(verdict, ZqError):
            replies.append(verdict)
            continue
        last = verdict.producer.last
        new = command.records[max(0, last + 1 - mark.seq) :]
        if new:
            kept = [record for record in new if command.reach.covers(record.queue)]
            append_forwarded(work, command.device, kept)
            last = mark.seq + len(command.records) - 1
        producer = replace(verdict.producer, last=last, at=work.now, first=last + 1, key=0, step=0)
        book.learn(producer)
        replies.append(producer)
    book.write()
    return replies
