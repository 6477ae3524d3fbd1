"""`zq schema`: shows, sets and removes the schema of a queue."""

from typing import IO

import click
import msgspec

from zq.cli.filtering import CREATE, check_queue
from zq.cli.output import print_json
from zq.cli.remote import Remote, talks
from zq.cli.rooms import Section
from zq.cli.terminal import one_line, say
from zq.cli.words import NAME, json_of


@click.command(
    epilog="""\b
Examples:
  zq schema mail                     show it
  zq schema mail --set letter.avsc
  zq schema mail --set - <letter.avsc
  zq schema mail --remove

New jobs of the queue have to match the schema, which is one of Avro. Exit codes: 0, 1 if the queue
has no schema or the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("queue", type=NAME)
@click.option("--set", "file", type=click.File("rb"), metavar="FILE", help="Set this one.")
@click.option("--remove", is_flag=True, help="Check new jobs no longer.")
@CREATE
@talks
def schema(remote: Remote, queue: str, file: IO[bytes] | None, remove: bool, create: bool) -> None:
    """Show the schema of the payloads of QUEUE, or set or remove it."""
    from zq.features.schemas.client import ServerSchemas

    if file is not None and remove:
        raise click.UsageError("give --set or --remove, not both")
    schemas = ServerSchemas(remote.backend.ask)
    if remove:
        remote.run(schemas.drop(queue))
        if remote.as_json:
            print_json({"queue": queue, "schema": None})
        else:
            say(f"new jobs of {one_line(queue)} are not checked")
        return
    if file is None:
        found = remote.run(schemas.get(queue))
    else:
        try:
            wanted = json_of(file.read())
        except ValueError as error:
            raise click.UsageError(f"the schema is not JSON: {error}") from None
        check_queue(remote, queue, create=create)
        found = remote.run(schemas.put(queue, wanted))
    if remote.as_json:
        print_json(found)
    elif file is None:
        for line in msgspec.json.format(msgspec.json.encode(found.schema)).decode().splitlines():
            say(line)
    else:
        say(f"new jobs of {one_line(queue)} have to match version {found.version}")


COMMANDS = {Section.QUEUES: (schema,)}
