"""No version with a known advisory is installed with zq.

The machines that build zq can ask no list of advisories, so this table stands for one. Add a row
when an advisory names a package that zq depends on, and raise its bound in `pyproject.toml`.
"""

import contextlib
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parent.parent

# Distribution → the lowest version without a known advisory.
LOWEST_SAFE = {
    "aiohttp": "3.14.5",
    "click": "8.3.3",
    "cryptography": "46.0.7",
    "h2": "4.3.0",
    "jinja2": "3.1.6",
    "jq": "1.9.1",
    "protobuf": "6.33.5",
    "pyjwt": "2.13.0",
}


def declared() -> dict[str, list[Requirement]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    found: dict[str, list[Requirement]] = {}
    for each in map(Requirement, (line for group in groups for line in group)):
        found.setdefault(each.name, []).append(each)
    return found


@pytest.mark.parametrize("name", LOWEST_SAFE)
def test_no_range_admits_a_version_with_an_advisory(name: str) -> None:
    lowest = Version(LOWEST_SAFE[name])
    requirements = declared()[name]
    assert requirements
    for requirement in requirements:
        floors = [Version(s.version) for s in requirement.specifier if s.operator == ">="]
        assert floors and max(floors) >= lowest, requirement
    with contextlib.suppress(PackageNotFoundError):  # not all are installed everywhere
        assert Version(version(name)) >= lowest
