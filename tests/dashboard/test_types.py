"""The types in the comments of the page's scripts, which no browser looks at."""

import shutil
import subprocess
from pathlib import Path

from zq.operators.page.http import page

TESTS = Path(__file__).parent.parent
COMPILER = TESTS / "clients" / "node_modules" / "typescript" / "bin" / "tsc"
STATIC = Path(page.__file__).parent / "static"

FLAGS = [
    *("--noEmit", "--allowJs", "--checkJs", "--strict", "--skipLibCheck"),
    *("--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler"),
    *("--lib", "es2023,dom,dom.iterable"),
]


def complaints(*files: Path) -> str:
    node = shutil.which("node")
    assert node, "types are checked in Node: apt-get install nodejs"
    assert COMPILER.exists(), "sh .ci/setup dev brings TypeScript"
    run = subprocess.run(
        [node, COMPILER, *FLAGS, *files], capture_output=True, text=True, check=False
    )
    return run.stdout + run.stderr


def test_every_script_has_the_types_that_its_comments_say(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.js"
    wrong.write_text("/** @param {number} n */\nexport const next = (n) => n.length;\n")
    lines = complaints(wrong, *sorted(STATIC.glob("*.js"))).splitlines()
    # One that is wrong shows that somebody looks.
    assert [line.partition(": ")[2] for line in lines] == [
        "error TS2339: Property 'length' does not exist on type 'number'."
    ]
