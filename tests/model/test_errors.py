"""The tree of errors, as its module draws it."""

import re

from zq.model import errors

BRANCH = re.compile(r"^([│├└─ ]*)(\w+)", re.MULTILINE)


def test_the_tree_shows_every_error_of_the_core_below_its_parent() -> None:
    text = errors.__doc__ or ""
    drawn: dict[str, str] = {}
    above: list[str] = []
    for branch, name in BRANCH.findall(text[text.index("ZqError") :]):
        depth = len(branch) // 4
        above[depth:] = [name]
        drawn[name] = above[depth - 1] if depth else "Exception"

    assert drawn == {
        name: kind.__bases__[0].__name__
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.ZqError)
    }
