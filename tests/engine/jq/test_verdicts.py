"""Which payloads a program matches, and which programs are refused."""

import asyncio
import json
import os

import pytest

from zq.engine.jq.filter import MIB, JqFilter
from zq.model.errors import InvalidFilter

from .processes import children, is_usable

# Program, payload, whether it matches.
MATCHES = [
    (".", "null", False),
    (".", "false", False),
    (".", "true", True),
    (".", "0", True),
    (".", '""', True),
    (".", "[]", True),
    (".a.b == 1", '{"a":{"b":1}}', True),
    (".a.b == 1", '{"a":{"b":2}}', False),
    (".a.b == 1", "{}", False),
    ("select(.a)", '{"a":1}', True),
    ("select(.a)", '{"a":null}', False),
    ("empty", "1", False),
    (".[]", "[null,false]", False),
    (".[]", "[null,false,0]", True),
    ("null, true", "1", True),
    ("first(range(10;infinite)) == 10", "1", True),
    ('.name | test("^AB"; "i")', '{"name":"abc"}', True),
    ('.name | test("^AB")', '{"name":"abc"}', False),
    ('.name | capture("(?<year>\\\\d+)").year == "2024"', '{"name":"in 2024"}', True),
    ('contains({tags:["x"]})', '{"tags":["xy","z"]}', True),
    ('contains({tags:["x"]})', '{"tags":["y"]}', False),
    ('.tags | index("z") == 1', '{"tags":["y","z"]}', True),
    ("any(.[]; . > 2)", "[1,2,3]", True),
    ("all(.[]; . > 2)", "[1,2,3]", False),
    ("[.[] | select(. > 1)] | add == 5", "[1,2,3]", True),
    ('to_entries | map(.key) == ["a","b"]', '{"b":1,"a":2}', False),
    ('keys == ["a","b"]', '{"b":1,"a":2}', True),
    ("[paths] | length == 3", '{"a":[1,2]}', True),
    ("def twice: . * 2; twice == 4", "2", True),
    ("reduce .[] as $x (0; . + $x) == 6", "[1,2,3]", True),
    ("try error catch . == 1", "1", True),
    (".at | fromdate == 0", '{"at":"1970-01-01T00:00:00Z"}', True),
    ('.text == "zażółć 🦊"', '{"text":"zażółć 🦊"}', True),
    ('.text == "a\\u0000b"', '{"text":"a\\u0000b"}', True),
    (".import and .include", '{"import":1,"include":2}', True),
    ('. == {import: "import \\"a\\" as a;"}', '{"import":"import \\"a\\" as a;"}', True),
    (". # a comment \\", "true", True),
    # An error ends the outputs: what came before it counts.
    ("error", "1", False),
    ("error({a: 1})", "1", False),
    (".a", "1", False),
    (".[] | .a", '[{"a":null},1]', False),
    (".[] | .a", '[{"a":7},1]', True),
    (".[] | .a", '[1,{"a":7}]', False),
    # Digits that no arithmetic touched.
    (". == 9007199254740993", "9007199254740993", True),
    (". == 9007199254740992", "9007199254740993", False),
    (". == 18446744073709551615", "18446744073709551615", True),
    ('tojson == "-9223372036854775807"', "-9223372036854775807", True),
    (". + 0 == 9007199254740992", "9007199254740993", True),
]

REFUSED = {
    "": 'Top-level program not given (try ".")',
    " \n": 'Top-level program not given (try ".")',
    "# nothing": 'Top-level program not given (try ".")',
    "def f: 1;": 'Top-level program not given (try ".")',
    "no_such": "no_such/0 is not defined at line 1, column 1",
    "1 |\n  test": "test/0 is not defined at line 2, column 3",
    "$x": "$x is not defined at line 1, column 1",
    "1 +": "syntax error, unexpected end of file at line 1, column 3",
    "1 ]": "syntax error, unexpected INVALID_CHARACTER, expecting end of file at line 1, column 3",
    "true\0": "the program contains a NUL character",
    '"\ud800"': "the program is not valid Unicode",
}


async def test_matches_iff_any_output_before_an_error_is_truthy(jq_filter: JqFilter) -> None:
    found = [(p, row, (await jq_filter.matches(p, [row]))[0]) for p, row, _ in MATCHES]

    assert found == MATCHES


async def test_each_row_gets_its_own_verdict(jq_filter: JqFilter) -> None:
    rows = [json.dumps({"n": n, "pad": "x" * 10_000}) for n in range(1000)]

    verdicts = await jq_filter.matches("if .n % 7 == 0 then error else .n % 2 == 0 end", rows)

    assert verdicts == [n % 7 != 0 and n % 2 == 0 for n in range(1000)]


async def test_a_call_has_a_limit_of_rows(jq_filter: JqFilter) -> None:
    assert await jq_filter.matches(".", []) == []
    with pytest.raises(ValueError, match="1001 payloads"):
        await jq_filter.matches(".", ["1"] * 1001)


async def test_a_payload_may_be_large(jq_filter: JqFilter) -> None:
    payload = json.dumps({"a": "x" * (4 * MIB), "b": 1})

    assert await jq_filter.matches(".b == 1", [payload, "{}", payload]) == [True, False, True]


async def test_what_does_not_compile_is_refused_with_its_place(jq_filter: JqFilter) -> None:
    found = {}
    for program in REFUSED:
        with pytest.raises(InvalidFilter) as refusal:
            await jq_filter.check(program)
        found[program] = refusal.value.message

    assert found == {program: f"invalid filter: {reason}" for program, reason in REFUSED.items()}
    await jq_filter.check(".")


async def test_a_refusal_with_many_rows_leaves_the_pipe_in_step(jq_filter: JqFilter) -> None:
    with pytest.raises(InvalidFilter):
        await jq_filter.matches("no_such", [json.dumps("x" * 10_000)] * 1000)

    assert await is_usable(jq_filter)


async def test_a_refusal_is_short(jq_filter: JqFilter) -> None:
    with pytest.raises(InvalidFilter) as refusal:
        await jq_filter.check("a" * 60_000)

    assert len(refusal.value.message) < 600


async def test_calls_at_the_same_time_get_their_own_answers(jq_filter: JqFilter) -> None:
    verdicts = await asyncio.gather(
        *(jq_filter.matches(f". == {n}", ["3", "5", "8"]) for n in range(10))
    )

    assert verdicts == [[n == 3, n == 5, n == 8] for n in range(10)]
    assert len(children(os.getpid())) == 1


@pytest.mark.parametrize(
    "program",
    [
        *("IN(1, 2)", "IN(.[]; 1)", "tostream", "fromstream(.)"),
        *("input", "[inputs] == []", "input_filename", "input_line_number"),
        *("get_search_list", "builtins", "have_decnum", "have_literal_numbers"),
    ],
)
async def test_what_the_engine_of_zizq_does_not_have_is_not_defined(
    jq_filter: JqFilter, program: str
) -> None:
    with pytest.raises(InvalidFilter, match=r"invalid filter: \w+ is not defined$"):
        await jq_filter.check(program)


async def test_a_program_may_define_what_is_not_there(jq_filter: JqFilter) -> None:
    program = "def IN($x): . == $x; IN(1)"

    assert await jq_filter.matches(program, ["1", "2"]) == [True, False]


@pytest.mark.parametrize(
    ("program", "verdicts"),
    [
        (". / 0", [True, False, True, False]),
        (". / 0 > 5", [True, False, False, False]),
        (". / 0 == -infinite", [False, False, True, False]),
        ("(. / 0) | isnan", [False, True, False, False]),
        (". / 2 == 0.5", [True, False, False, False]),
        ('. / "," == ["a", "b"]', [False, False, False, True]),
    ],
)
async def test_a_number_divided_by_zero_is_infinite(
    jq_filter: JqFilter, program: str, verdicts: list[bool]
) -> None:
    assert await jq_filter.matches(program, ["1", "0", "-1", '"a,b"']) == verdicts
