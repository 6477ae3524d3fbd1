"""The settings table: parsing, sources, limits, and the copy of it in the documents."""

import re
from typing import Any

import pytest
from documents import region
from hypothesis import given
from hypothesis import strategies as st

from zq.config import SETTINGS, Settings, markdown
from zq.setting import DURATION, SIZE, ConfigError


def load(name: str, text: str) -> Any:
    settings = Settings.load({name: text}, {})
    return next(value for setting, value in settings.rows() if setting.name == name)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0", 0),
        ("000", 0),
        ("1500 ms", 1_500),
        ("500ms", 500),
        ("30s", 30_000),
        ("10m", 600_000),
        ("1h", 3_600_000),
        ("7d", 604_800_000),
        (" 7 D ", 604_800_000),
    ],
)
def test_a_duration_is_milliseconds(text: str, milliseconds: int) -> None:
    assert load("default_dead_job_retention", text) == milliseconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4_096),
        ("10B", 10),
        ("512KiB", 524_288),
        ("64MiB", 67_108_864),
        ("2GiB", 2_147_483_648),
        ("3KB", 3_000),
        ("256MB", 256_000_000),
        ("1gb", 1_000_000_000),
    ],
)
def test_a_size_is_bytes(text: str, size: int) -> None:
    assert load("disk_reserve", text) == size


@given(st.integers(0, 2**53 - 1))
def test_what_is_shown_reads_back_as_the_same_value(value: int) -> None:
    assert DURATION.parse(DURATION.show(value)) == value
    assert SIZE.parse(SIZE.show(value)) == value


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_default_as_shown_is_the_default(setting: Any) -> None:
    if setting.default is None:
        assert setting.rule.unset
    else:
        assert load(setting.name, setting.default_text) == setting.default


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "heartbeat_interval",
            "3 parsecs",
            '--heartbeat-interval: "3 parsecs" is not a duration: '
            "write a number with its unit, such as 500ms, 3s, 10m, 1h or 7d",
        ),
        ("drain", "-1", '--drain: "-1" is not a duration: write a number with its unit'),
        ("drain", "30", '--drain: "30" is not a duration: write a number with its unit'),
        ("drain", "1.5s", '--drain: "1.5s" is not a duration'),
        ("drain", "9" * 5_000, "is not a duration"),
        ("drain", "٣", '--drain: "٣" is not a duration'),
        (
            "max_body",
            "64 mebibytes",
            '"64 mebibytes" is not a size: write a number of bytes or 512KiB',
        ),
        ("max_body", "0", "--max-body: 0 is out of range: write a size of at least 1B"),
        ("max_body", "64M", '"64M" is not a size'),
        ("port", "http", '--port: "http" is not a number: write a whole number'),
        ("port", "70000", "--port: 70000 is out of range: write a number from 0 to 65535"),
        ("port", "-1", "--port: -1 is out of range: write a number from 0 to 65535"),
        ("heartbeat_interval", "0", "0 is out of range: write a duration of at least 1ms"),
        ("default_backoff_exponent", "nan", "nan is out of range"),
        ("default_backoff_exponent", "inf", "inf is out of range"),
        (
            "default_backoff_exponent",
            "four",
            '"four" is not a number: write a number such as 4 or 4.0',
        ),
        (
            "default_commit_mode",
            "async",
            '--default-commit-mode: "async" is not a choice: write buffered or fsync',
        ),
        ("access_log", "some", '"some" is not a choice: write off, sampled or all'),
        ("insecure", "maybe", '--insecure: "maybe" is not a switch: write yes or no'),
        ("keys", " ", '--keys: " " is not a file: write the path of a file'),
        ("allow_host", "queue.example:80", "is not a list: write names or addresses without ports"),
        ("allow_host", "https://queue.example", "is not a list: write names or addresses"),
        ("allow_host", "a,", "is not a list: write names or addresses"),
        ("allow_origin", "queue.example", "is not a list: write origins such as https://"),
        ("allow_origin", "https://queue.example/", "is not a list: write origins such as https://"),
        ("allow_origin", "*", "is not a list: write origins such as https://"),
        ("ui_environment", "our production", "is not a word: write up to 20 letters, digits, dots"),
        ("ui_mask", "(token", '--ui-mask: "(token" is not a pattern: write one such as'),
        ("ui_mask", ".*token", "without `*`, `+` and `{`, since a part of a name is enough"),
        ("ui_mask", "(?:a+)+b", "is not a pattern"),
        ("ui_mask", "(a)\\1", "is not a pattern"),
        ("ui_mask", "(?=a)b", "is not a pattern"),
        ("ui_mask", "a?" * 9, "and with at most 8 groups and 8 optional parts"),
        ("host", "", '--host: "" is not a text: write at least one character'),
        ("root_dir", "", '--root-dir: "" is not a path: write the path of a directory'),
        (
            "max_inbox_bytes",
            "1MiB",
            "--max-inbox-bytes: 1MiB cannot hold a body of --max-body (64MiB)",
        ),
    ],
)
def test_a_bad_value_names_its_flag_and_the_remedy(name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        load(name, text)


def test_a_list_is_written_with_commas() -> None:
    assert load("allow_host", "queue.example, 10.0.0.1,fd00::1") == (
        "queue.example",
        "10.0.0.1",
        "fd00::1",
    )
    assert load("allow_origin", "https://A.example:8443") == ("https://a.example:8443",)


@pytest.mark.parametrize(("text", "value"), [("yes", True), ("1", True), ("Off", False)])
def test_a_switch_is_on_or_off(text: str, value: bool) -> None:
    assert load("insecure", text) is value


@pytest.mark.parametrize("text", ["password|token", r"api[*+{?]?key", r"^(?:pin|\w\+)$", "[]{]"])
def test_a_pattern_may_have_all_that_repeats_nothing(text: str) -> None:
    assert load("ui_mask", text) == text


def test_a_choice_may_be_written_in_capitals() -> None:
    assert load("log_level", "DEBUG") == "debug"


def test_what_no_flag_or_variable_sets_has_its_default() -> None:
    assert Settings.load({"port": None}, {}) == Settings()


def test_the_flag_comes_before_the_variables_and_zq_before_zizq() -> None:
    environ = {
        "ZQ_PORT": "2",
        "ZIZQ_PORT": "3",
        "ZIZQ_HOST": "::1",
        "ZQ_DRAIN": "",
        "ZIZQ_DRAIN": "5s",
    }

    assert Settings.load({"port": "1"}, environ).port == 1
    assert Settings.load({}, environ).port == 2
    assert Settings.load({}, environ).host == "::1"
    assert Settings.load({}, environ).drain == 5_000  # an empty variable counts as unset


def test_a_bare_duration_is_milliseconds_where_zizq_says_so_and_else_refused() -> None:
    assert Settings.load({}, {"ZIZQ_READ_TIMEOUT": "1500"}).read_timeout == 1_500
    assert Settings.load({}, {"ZIZQ_READ_TIMEOUT": "2s"}).read_timeout == 2_000
    with pytest.raises(ConfigError, match='ZQ_READ_TIMEOUT: "1500" is not a duration'):
        Settings.load({}, {"ZQ_READ_TIMEOUT": "1500", "ZIZQ_READ_TIMEOUT": "1500"})


@pytest.mark.parametrize("variable", ["ZQ_READ_TIMEOUT", "ZIZQ_READ_TIMEOUT"])
def test_a_bad_value_in_a_variable_names_the_variable(variable: str) -> None:
    with pytest.raises(ConfigError, match=f'^{variable}: "soon" is not a duration'):
        Settings.load({}, {variable: "soon"})


def test_settings_made_in_code_are_checked_too() -> None:
    with pytest.raises(ConfigError, match="--port: -1 is out of range"):
        Settings(port=-1)


def test_each_setting_has_a_flag_of_its_own() -> None:
    flags = [setting.flag for setting in SETTINGS] + [
        s.rule.short for s in SETTINGS if s.rule.short
    ]

    assert len(flags) == len(set(flags))


def test_the_documents_hold_the_table() -> None:
    assert region("settings") == markdown(), "run `python -m zq.config` and paste the table"
