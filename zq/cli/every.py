"""All commands of `zq`, under what people do with them: the core's, then those of each room."""

import click

from zq.cli.backup import backup, restore
from zq.cli.change import change
from zq.cli.check import check, salvage
from zq.cli.dead import dead
from zq.cli.jobs import jobs
from zq.cli.keys import keys
from zq.cli.maintenance import compact, damage
from zq.cli.move import move
from zq.cli.pipeline import pipeline
from zq.cli.push import push
from zq.cli.queues import queues
from zq.cli.relay import relay
from zq.cli.rooms import Section
from zq.cli.serve import serve
from zq.cli.settings import pause, resume, settings
from zq.cli.status import status
from zq.cli.tls import tls
from zq.cli.wait import wait
from zq.cli.worker import worker
from zq.cli.workers import workers
from zq.rooms import parts

SECTIONS: dict[Section, list[click.Command]] = {
    Section.RUN: [serve, worker, relay],
    Section.LOOK: [queues, dead, jobs, status, workers],
    Section.JOBS: [push, wait, change],
    Section.QUEUES: [pause, resume, settings],
    Section.LOOK_BACK: [pipeline],
    Section.REPAIR: [backup, restore, compact, check, salvage, damage, move],
    Section.ACCESS: [keys, tls],
}
"""The commands of each section of `zq --help`, in their order."""

for room in parts("cli", "COMMANDS", dict):
    for section, commands in room.items():
        SECTIONS[section] += commands
