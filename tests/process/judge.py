"""Has schemathesis draw requests from a description, and judge what a server answers."""

import asyncio
import json
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from .server import ServerProcess

TESTS = Path(__file__).parents[1]
PATIENCE_S = 600


class Drawn(NamedTuple):
    """What is drawn: from which document, with which hooks, and which checks are not made.

    `examples` are requests for each operation beside those that go through its values in turn.
    `everywhere` draws each body in all formats it may have, and not in one, and each optional
    parameter at all operations that have it.
    """

    document: str
    hooks: str
    left_out: Sequence[str]
    examples: int
    phases: str = "coverage,fuzzing"
    everywhere: bool = False


async def judged(
    server: ServerProcess, drawn: Drawn, place: Path, variables: Mapping[str, str] | None = None
) -> int:
    """How many operations were tested. Fails with what schemathesis says of a fault.

    `variables` are those of the environment that the hooks read.
    """
    # From a file: schemathesis would leave out the operation that it has the document from.
    document = place / "openapi.json"
    async with server.client() as client:
        reply = await client.get(drawn.document)
        assert reply.status == 200
        described = json.loads(reply.body)
        if not drawn.everywhere:
            _one_format_each(described)
            _one_place_each(described)
        document.write_text(json.dumps(described))
    run = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("schemathesis")), "run", str(document)),
        *("--url", f"http://127.0.0.1:{server.port}"),
        *("--checks", "all", "--exclude-checks", ",".join(drawn.left_out)),
        *("--phases", drawn.phases, "--max-examples", str(drawn.examples)),
        *("--generation-deterministic", "--no-color", "--warnings", "off"),
        cwd=place,
        # Nothing else: requests looks through all variables for a proxy, each time.
        env={
            **(variables or {}),
            "NO_PROXY": "*",
            "SCHEMATHESIS_HOOKS": drawn.hooks,
            "PYTHONPATH": str(TESTS),
            # What it knows of Unicode takes two seconds to find out, and is kept.
            "HYPOTHESIS_STORAGE_DIRECTORY": str(TESTS.parent / ".hypothesis"),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(PATIENCE_S):
        said = (await run.communicate())[0].decode()
    assert run.returncode == 0, said
    tested = re.search(r"Tested: (\d+)", said)
    assert tested, said
    assert "errored" not in said, said
    return int(tested[1])


def _one_format_each(described: Any) -> None:
    """Leave each operation one format of its body, chosen by its name.

    The rules of a value lie behind the formats, so that half of the requests try each rule, and
    both formats are tried.
    """
    for item in described["paths"].values():
        for operation in item.values():
            content = operation.get("requestBody", {}).get("content", {})
            formats = sorted(content)
            for each in formats:
                if each != formats[crc32(operation["operationId"].encode()) % len(formats)]:
                    del content[each]


def _one_place_each(described: Any) -> None:
    """Leave each optional parameter to one of the operations that have it, chosen by its name.

    Thirteen operations have the same fourteen filters, and the same code reads them.
    """
    places = defaultdict(list)
    for item in described["paths"].values():
        for operation in item.values():
            for parameter in operation.get("parameters", []):
                if not parameter.get("required"):
                    places[json.dumps(parameter, sort_keys=True)].append((operation, parameter))
    for text, found in places.items():
        del found[crc32(text.encode()) % len(found)]
        for operation, parameter in found:
            operation["parameters"].remove(parameter)
