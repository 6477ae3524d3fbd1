"""The documents: every block of code is run by a test, every link and command leads somewhere."""

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from documents import BLOCK, ROOT, blocks, commands, pages, region, words

from zq.cli import manual
from zq.cli.group import main

MARKED = re.compile(r"<!-- ([^/].*?) -->\n(.*?)<!-- /\1 -->", re.S)
ILLUSTRATION = "text"
"""The language of blocks that nobody runs: output and pictures."""

SHOWN = {
    "tests": "this suite would run itself",
    "contributing": "this suite would run itself",
    "pythons": "this suite would run itself",
    "without": "this suite would run itself",
    "systemd service": "no systemd runs here; tests/test_systemd.py judges the unit",
    "systemd socket": "no systemd runs here; tests/process/test_activation.py hands over a socket",
    "deploying: the server": "no systemd runs here; tests/process/test_activation.py does the same",
}
"""The only blocks that no test runs, and why. What they begin with is looked up."""

PROJECT = [page for page in pages() if "bench" not in page.parts and "tests" not in page.parts]
"""README and what belongs to it. The bench's pages hold results, those of tests how they work."""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


every_page = pytest.mark.parametrize("page", pages(), ids=name_of)
project_page = pytest.mark.parametrize("page", PROJECT, ids=name_of)


@cache
def asked_for() -> set[str]:
    """The texts in other tests that read the documents, among them the names of what they run."""
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    sources = [path.read_text("utf-8") for path in files]
    readers = [text for text in sources if re.search("^from documents import", text, re.M)]
    return {name for text in readers for name in re.findall(r'"([^"\n]+)"', text)}


@project_page
def test_each_block_of_code_is_run_by_a_test_or_is_an_illustration(page: Path) -> None:
    text = page.read_text("utf-8")
    for name, part in MARKED.findall(text):
        run = not blocks(part) or name in asked_for()
        assert run or name in SHOWN, f"no test asks for <!-- {name} -->"
    assert {each.language for each in blocks(MARKED.sub("", text))} <= {ILLUSTRATION}


def test_what_a_test_runs_is_not_excused() -> None:
    assert set(SHOWN) & asked_for() == set()


@project_page
def test_code_stands_in_fences(page: Path) -> None:
    # What is only indented is code as well, and would be run by nobody.
    prose = BLOCK.sub("", page.read_text("utf-8"))
    assert not re.findall(r"\n\n {4,}\S.*", prose)


def test_a_name_marks_one_part() -> None:
    names = [name for page in PROJECT for name, _ in MARKED.findall(page.read_text("utf-8"))]
    assert len(names) == len(set(names))


def lines_of_code(page: Path) -> Iterator[str]:
    """The commands of a page: each line of its blocks, and each piece of code in its text."""
    text = page.read_text("utf-8")
    for block in blocks(text):
        yield from block.text.splitlines()
    for piece in re.findall(r"`([^`]+)`", BLOCK.sub("", text)):
        yield " ".join(piece.split())


def zq_commands(page: Path) -> list[str]:
    """What begins with `zq` and the name of a command, without what stands before it."""
    found = (
        re.match(r"(?:\$ |\.venv/bin/)?zq ([a-z]+(?= |$).*)", line) for line in lines_of_code(page)
    )
    return [match[1] for match in found if match]


@project_page
def test_each_command_and_flag_is_one_of_zq(page: Path) -> None:
    for line in zq_commands(page):
        words = shlex.split(line)
        command: click.Command = main
        # A command keeps the help option of the first context in which it was asked for one.
        context = click.Context(main, **main.context_settings)
        while isinstance(command, click.Group) and words:
            found = command.get_command(context, words.pop(0))
            assert found, line
            command, context = found, click.Context(found, parent=context)
        if not isinstance(command, click.Group):
            command.make_parser(context).parse_args(words)


FLAGS_OF_OTHERS = {"--help", "--no-reload", "--no-relay", "--dead", "--hypothesis-seed"}
"""Flags that pages name alone: of every command, `manage.py zq_worker`, `zq.moving`, pytest."""


def flags_of(command: click.Command) -> set[str]:
    """The flags of a command, and of those below it."""
    flags = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)}
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return flags.union(*map(flags_of, below))


@project_page
def test_each_flag_that_is_named_alone_is_one_of_zq(page: Path) -> None:
    text = BLOCK.sub("", page.read_text("utf-8"))
    named = set(re.findall(r"`(--[a-z0-9-]+)[^`]*`", text))
    assert named <= flags_of(main) | FLAGS_OF_OTHERS


def test_commands_are_found() -> None:
    assert sum(len(zq_commands(page)) for page in PROJECT) > 30


def test_the_manual_page_is_that_of_the_commands() -> None:
    remedy = "print it anew: python -m zq.cli.manual > docs/zq.1"
    assert (ROOT / "docs" / "zq.1").read_text("utf-8") == manual.page(), remedy


@pytest.mark.parametrize("name", SHOWN)
def test_commands_that_are_only_shown_begin_with_a_tool_that_is_there(name: str) -> None:
    installed = {"bash", "cp", "curl", "sh", "systemctl"}
    tools = {f".venv/bin/{tool}" for tool in ("mypy", "pytest", "ruff")}
    for command in commands(name):
        for part in re.split(r"\n|&&", command):
            assert shlex.split(part)[0] in installed | tools, part


def anchors(page: Path) -> set[str]:
    """What a link to a part of this page may name: headings as GitHub and others make them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text("utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_each_link_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", page.read_text("utf-8"))):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    listed = set(re.findall(r"\]\((\w[\w-]*\.md)\)", index))
    assert listed == {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}


def test_the_navigation_of_the_site_has_every_page() -> None:
    site = (ROOT / "docs" / "site" / "mkdocs.yml").read_text("utf-8")
    listed = re.findall(r"^ +- .*: (\S+\.md)$", site, re.M)
    reference = "zq/http/api/description/reference.md"
    assert sorted(listed) == sorted([*map(name_of, pages()), reference])


def numbers(cell: str) -> int:
    """The number in a cell of a table, or 0."""
    found = re.fullmatch(r" ([\d,]+) ", cell)
    return int(found[1].replace(",", "")) if found else 0


@pytest.mark.parametrize("kind, row", [("kill", 0), ("cut", 1)])
def test_the_safety_figures_sum_up_what_was_run(kind: str, row: int) -> None:
    runs = (ROOT / "tests" / "crash" / "README.md").read_text("utf-8")
    table = [line.split("|") for line in runs.splitlines() if re.match(rf"\|.*`soak {kind} ", line)]
    told = region("safety figures").splitlines()[2:][row].split("|")
    assert len(table) > 2
    for column in (2, 3):  # crashes, events
        assert sum(numbers(cells[column]) for cells in table) == numbers(told[column])
    assert f"{told[2].strip()} {'kills' if kind == 'kill' else 'power cuts'}" in words("README.md")


def test_the_package_has_its_licence() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert 'license = "MIT"' in project
    assert 'license-files = ["LICENSE"]' in project
    assert (ROOT / "LICENSE").read_text("utf-8").startswith("MIT License\n")


PATH = re.compile(r"(?<![\w./-])(?:zq|tests|bench|docs|systemd|\.ci)/[\w./@-]*\w")
"""A file or folder of the repository, named from its top."""


@every_page
def test_each_path_that_is_named_exists(page: Path) -> None:
    # A folder that a command makes by itself is none of the repository's.
    text = re.sub(r"https?://\S+|tls/\S+", "", page.read_text("utf-8"))
    assert [path for path in PATH.findall(text) if not (ROOT / path).exists()] == []


def texts_of_zq() -> list[str]:
    """Every text in the code of zq, with `…` for what is filled in."""
    found = []
    for file in (ROOT / "zq").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (str(v.value) if isinstance(v, ast.Constant) else "…" for v in node.values)
                found.append("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def test_the_messages_to_look_up_are_messages_of_zq() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    messages = re.findall(r"^\| `(.+?)` \|", page, re.M)
    texts = "\n".join(texts_of_zq()).replace("`", "")
    pieces = [piece.strip("() ") for message in messages for piece in message.split("…")]
    assert len(messages) > 20
    assert [piece for piece in pieces if piece not in texts] == []
