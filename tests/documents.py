"""The documents as tests read them: the text between two marks, and its blocks of code.

A mark is `<!-- name -->` and ends with `<!-- /name -->`. Names are unique over all pages, so a test
does not say on which page a part stands.
"""

import re
import shlex
import sys
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SERVER, ID = "http://127.0.0.1:7890", "01JD0000000000000000000000"
"""What stands in the documents for the test's server and for the id of its job."""

BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.M | re.S)


class Block(NamedTuple):
    """A fenced block of code."""

    language: str
    text: str


@cache
def pages() -> tuple[Path, ...]:
    """Every document that people read, the descriptions of tests and benchmarks among them."""
    folders = (ROOT, ROOT / "docs", ROOT / "bench", ROOT / "bench" / "results")
    tests = (ROOT / "tests" / name / "README.md" for name in ("crash", "http/transport/http2"))
    return (*(page for folder in folders for page in sorted(folder.glob("*.md"))), *tests)


def region(name: str) -> str:
    """What stands between the marks of this name."""
    pattern = re.compile(rf"<!-- {re.escape(name)} -->\n(.*?)<!-- /{re.escape(name)} -->", re.S)
    found = [each[1] for page in pages() for each in pattern.finditer(page.read_text("utf-8"))]
    assert len(found) == 1, f"{len(found)} parts between <!-- {name} --> and <!-- /{name} -->"
    return found[0].strip("\n")


def blocks(text: str) -> list[Block]:
    """The blocks of code of a text, in their order."""
    return [Block(language, dedent(code)) for _, language, code in BLOCK.findall(text)]


def code(name: str) -> str:
    """The one block of code between the marks."""
    (block,) = blocks(region(name))
    return block.text


def commands(name: str) -> list[str]:
    """The commands between the marks, in their order: an empty line ends one."""
    shell = (each.text for each in blocks(region(name)) if each.language == "sh")
    return [command for text in shell for command in text.strip("\n").split("\n\n")]


def started_by(command: str) -> list[str]:
    """The words that start what a shell would, `zq` and Python without a shell if it needs none.

    So they are forked by `forked`, which costs a fifth.
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    program, *rest = lexer
    needs_shell = set("$`*") & set(command) or any(set(each) <= set("();<>|&") for each in rest)
    if program not in ("zq", "python", sys.executable) or needs_shell:
        return ["sh", "-c", command]
    return [sys.executable, *(["-m", "zq.cli"] if program == "zq" else []), *rest]


def words(page: str) -> str:
    """The text of a page with single spaces, for looking up what may be broken across lines."""
    return " ".join((ROOT / page).read_text("utf-8").split())
