"""The recipes of CONTRIBUTING.md, each followed once: how many files it takes, and that it works.

Each test makes the change of its recipe in a copy of the sources, and tries what is new from end to
end. If a file has other lines by now, follow the recipe anew, and correct it where it is wrong.
"""

from pathlib import Path

import pytest

from .tree import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_field_of_a_job(tree: Tree) -> None:
    tree.add(
        "zq/model/job.py",
        "    traceparent: str | None = None\n",
        "    note: Annotated[str, Meta(max_length=20)] | None = None\n",
    )
    tree.add("zq/client/options.py", "    content_type: str\n", "    note: str\n")
    tree.add("zq/client/options.py", '    "content_type": _text,\n', '    "note": _text,\n')
    tree.add(
        "zq/client/running.py",
        "        return self.delivery.traceparent\n",
        "\n    @property\n    def note(self) -> str | None:\n        return self.delivery.note\n",
    )
    tree.add(
        "zq/cli/push.py",
        '@click.option("--payloads", is_flag=True, help="The lines of the file are payloads.")\n',
        '@click.option("--note", help="A note for the worker.")\n',
    )

    printed = tree.tries(
        """
@app.task(note="from the task")
async def work() -> str | None:
    return zq.current_job().note

sent = {"queue": "q", "type": "t", "payload": 1, "note": "hello"}
stored = await call(running, "POST", "/jobs", sent)
assert (await call(running, "GET", f"/jobs/{stored['id']}"))["note"] == "hello"
entry = {"name": "e", "expression": "@daily", "job": sent}
group = await call(running, "PUT", "/crons/g", {"entries": [entry]})
assert group["entries"][0]["job"]["note"] == "hello"
id = (await command(running, "push", "q", "2", "--note", "typed")).strip()
assert (await call(running, "GET", f"/jobs/{id}"))["note"] == "typed"
async with zq.Worker(app):
    assert await work.call() == "from the task"
    assert await work.options(note="from the call").call() == "from the call"
try:
    await work.options(note="x" * 21).enqueue()
except zq.ZqError as error:
    assert "note" in str(error)
else:
    raise AssertionError("the server takes what the type forbids")
""",
        "zq.http.api.description.reference",
    )
    assert "`note` | text" in printed
    assert len(tree.touched) <= 7


def test_a_setting_of_a_queue(tree: Tree) -> None:
    settings = "zq/model/settings.py"
    tree.add(
        settings, "    leases_survive: bool | None = None\n", "    mildest: UInt32 | None = None\n"
    )
    tree.add(
        settings,
        "    leases_survive: bool | None | Unset = UNSET\n",
        "    mildest: UInt32 | None | Unset = UNSET\n",
    )
    tree.change(
        "zq/tick/intake.py",
        "            head = (key, job.queue, job.type, job.priority, status, ready_at)\n",
        "            mildest = self._work.settings_of(job.queue).mildest\n"
        "            priority = job.priority if mildest is None else min(job.priority, mildest)\n"
        "            head = (key, job.queue, job.type, priority, status, ready_at)\n",
    )
    tree.add(
        "zq/operators/page/static/queue_settings.js",
        '  ["Flow", [\n',
        '    { name: "mildest", label: "Mildest", kind: "whole", unit: "as priority" },\n',
    )

    printed = tree.tries(
        """
await call(running, "PUT", "/queues/q/settings", {"mildest": 7})
await call(running, "PATCH", "/queues/r/settings", {"mildest": 9})
assert "mildest  8" in await command(running, "settings", "r", "mildest=8")
for queue, priority in (("q", 7), ("r", 8)):
    job = await call(running, "POST", "/jobs", {"queue": queue, "type": "t", "payload": 1})
    assert (await call(running, "GET", f"/jobs/{job['id']}"))["priority"] == priority
""",
        "zq.http.api.description.reference",
    )
    assert "`mildest`" in printed
    assert len(tree.touched) <= 3


def test_a_metric(tree: Tree) -> None:
    tree.add(
        "zq/operators/ops/http_metrics.py",
        "METRICS = (\n",
        "    Metric(\n"
        '        "zq_waiting_streams",\n'
        '        "gauge",\n'
        '        "Jobs stored twice.",\n'
        "        lambda s: one(2 * s.figures.jobs.stored),\n"
        "    ),\n",
    )

    printed = tree.tries(
        """
await call(running, "POST", "/jobs", {"queue": "q", "type": "t", "payload": 1})
assert "zq_waiting_streams 2" in await call(running, "GET", "/metrics")
""",
        "zq.operators.ops.http_metrics",
    )
    assert "| `zq_waiting_streams` | gauge |" in printed
    assert len(tree.touched) == 1


def test_a_verb(tree: Tree) -> None:
    tree.change(
        "zq/features/crons/verbs.py",
        "class CronNames(msgspec.Struct):\n",
        "class CronCount(msgspec.Struct):\n"
        '    """The number of entries of a group."""\n\n'
        "    count: int\n\n\nclass CronNames(msgspec.Struct):\n",
    )
    tree.add(
        "zq/features/crons/verbs.py",
        'CLEAR = Verb("DELETE", "/crons", MANAGE, Deleted)\n',
        'COUNT = Verb("GET", f"{_GROUP}/count", READ, CronCount, refusals=_NO_GROUP)\n',
    )
    tree.change(
        "zq/features/crons/answers.py", "    CronNames,\n", "    CronCount,\n    CronNames,\n"
    )
    tree.add(
        "zq/features/crons/answers.py",
        "ANSWERS = VerbAnswers()\n",
        "\n\n@ANSWERS.to(verbs.COUNT)\n"
        "async def count(asked: Asked) -> CronCount:\n"
        '    """The number of entries of a group."""\n'
        "    _, entries = await _crons(asked).group(_group(asked), asked.reach)\n"
        "    return CronCount(len(entries))\n",
    )
    tree.add(
        "zq/features/crons/client.py",
        "        return (await self._ask(verbs.LIST)).crons\n",
        "\n    async def count(self, group: str) -> int:\n"
        '        """The number of entries of a group."""\n'
        "        return (await self._ask(verbs.COUNT, group=group)).count\n",
    )

    printed = tree.tries(
        """
job = {"queue": "q", "type": "t", "payload": 1}
entries = [{"name": name, "expression": "@daily", "job": job} for name in "abc"]
await call(running, "PUT", "/crons/g", {"entries": entries})
assert await call(running, "GET", "/crons/g/count") == {"count": 3}
assert await app.backend.schedules.count("g") == 3
with tempfile.TemporaryDirectory() as folder:
    async with zq.App(f"sqlite://{folder}/zq") as own:
        await own.backend.schedules.replace("g", [])
        assert await own.backend.schedules.count("g") == 0
""",
        "zq.http.api.description.reference",
    )
    assert "GET /crons/{group}/count" in printed
    assert len(tree.touched) <= 3


def test_a_feature(tree: Tree) -> None:
    tree.change(
        "zq/rooms.py",
        '    "zq.features.history",\n',
        '    "zq.features.greetings",\n    "zq.features.history",\n',
    )
    room = "zq/features/greetings"
    tree.write(f"{room}/__init__.py", '"""Greets whoever asks."""\n')
    tree.write(
        f"{room}/service.py",
        '"""The verbs of greetings."""\n\nfrom typing import Self\n\n'
        "from zq.service.services import Services\n\n\n"
        'class Greetings:\n    """Counts whom it has greeted."""\n\n'
        "    @classmethod\n    def of(cls, services: Services) -> Self:\n        return cls()\n\n"
        "    def __init__(self) -> None:\n        self.count = 0\n\n"
        "    def greet(self, name: str) -> str:\n        self.count += 1\n"
        '        return f"hello {name}, the {self.count}."\n',
    )
    tree.write(
        f"{room}/verbs.py",
        '"""The verbs of greetings."""\n\nimport msgspec\n\n'
        "from zq.model.keys import KeyScope\nfrom zq.verbs import Verb\n\n\n"
        'class Greeting(msgspec.Struct):\n    """A greeting."""\n\n    text: str\n\n\n'
        'GREET = Verb("GET", "/greetings/{name}", KeyScope.READ, Greeting)\n',
    )
    tree.write(
        f"{room}/answers.py",
        '"""What the verbs of greetings do."""\n\nfrom zq.answers import Asked, VerbAnswers\n'
        "from zq.features.greetings import verbs\n"
        "from zq.features.greetings.service import Greetings\n"
        "from zq.features.greetings.verbs import Greeting\n\nANSWERS = VerbAnswers()\n\n\n"
        "@ANSWERS.to(verbs.GREET)\nasync def greet(asked: Asked) -> Greeting:\n"
        '    """A greeting by name."""\n'
        '    return Greeting(asked.services[Greetings].greet(asked.path["name"]))\n',
    )
    tree.write(
        f"{room}/cli.py",
        '"""`zq greet`: greets somebody."""\n\nimport click\n\n'
        "from zq.cli.rooms import Section\n\n\n"
        '@click.command()\n@click.argument("name")\ndef greet(name: str) -> None:\n'
        '    """Greet NAME."""\n    click.echo(f"hello {name}")\n\n\n'
        "COMMANDS = {Section.LOOK: (greet,)}\n",
    )

    printed = tree.tries(
        """
assert await call(running, "GET", "/greetings/ann") == {"text": "hello ann, the 1."}
assert await call(running, "GET", "/greetings/bob") == {"text": "hello bob, the 2."}
assert await command(running, "greet", "ann") == "hello ann\\n"
""",
        "zq.http.api.description.reference",
        "zq.cli.manual",
    )
    assert "GET /greetings/{name}" in printed
    assert "zq greet" in printed
    assert [path for path in tree.touched if not path.startswith(room)] == ["zq/rooms.py"]


def test_a_finding_of_the_page(tree: Tree) -> None:
    rules = "zq/features/diagnosis/model.py"
    tree.add(rules, '    STUCK = "stuck"\n', '    CROWDED = "crowded"\n')
    tree.add(rules, "STATES = frozenset(\n    {\n", "        FindingCode.CROWDED,\n")
    tree.add(rules, '    FindingCode.STUCK: "stuck",\n', '    FindingCode.CROWDED: "crowded",\n')
    tree.add(
        rules,
        '    waits, name = f"{queue.ready:,} waiting", queue.queue\n',
        "    if queue.ready >= 3:\n"
        "        yield Finding(Severity.WARNING, FindingCode.CROWDED, waits, name)\n",
    )

    tree.tries("""
for _ in range(3):
    await call(running, "POST", "/jobs", {"queue": "q", "type": "t", "payload": 1})
(found,) = await app.backend.stats()
assert (found.state, found.state_text) == ("crowded", "3 waiting"), found
""")
    assert len(tree.touched) == 1
