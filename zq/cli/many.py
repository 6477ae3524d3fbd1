"""What commands that change several jobs share: one after the other, and a spinner meanwhile."""

import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from zq.cli.output import print_json
from zq.cli.remote import Refused, Remote, hint, is_absent
from zq.cli.terminal import one_line, say

T = TypeVar("T")


def one_by_one(
    remote: Remote,
    ids: tuple[str, ...],
    change: Callable[[str], Coroutine[Any, Any, T]],
    tell: Callable[[T], str],
    done: str,
    document: Callable[[T], Any],
) -> None:
    """Change jobs by their ids. One that is refused does not keep the others."""
    from zq.client.errors import ZqError

    refused = 0
    for id in ids:
        try:
            job = remote.run(change(id))
        except ZqError as error:
            if is_absent(error) or len(ids) == 1:
                raise
            refused += 1
            say(one_line(f"{id}: {error.message}{hint(error)}"), err=True)
            continue
        if remote.as_json:
            print_json(document(job))
        else:
            say(tell(job))
    if refused:
        raise Refused(f"{refused} of {len(ids)} jobs were not {done}")


@contextmanager
def spinning(text: str) -> Iterator[None]:
    """Show a spinner on a terminal while the server works."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(text)):
        yield
