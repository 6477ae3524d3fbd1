"""A field of a job is declared once: each place that has fields of jobs has it by that."""

from typing import Any

import msgspec
import pytest

from zq.cli.bulk import JobLine
from zq.client.values import Delivery, StoredJob, Submission
from zq.features.crons.verbs import TemplateDocument
from zq.model.checksums import job_checksum
from zq.model.job import BroughtFields, CarriedFields, Extras, JobFields, JobSettings, SettingFields
from zq.model.sharing import copier, is_bare, joined, maker, part_of, with_fields
from zq.outbox.writing import OutboxJob
from zq.wire.bodies import JobBody
from zq.wire.documents import JobDocument


def fields(kind: type[msgspec.Struct]) -> set[str]:
    return set(kind.__struct_fields__)


def test_what_senders_have_is_what_the_server_accepts() -> None:
    accepted = fields(JobBody)

    assert fields(Submission) == accepted
    assert fields(JobLine) == accepted
    assert fields(OutboxJob) == accepted
    assert fields(TemplateDocument) == accepted - {"ready_at"}


def test_a_field_of_jobs_is_in_every_place_by_its_declaration() -> None:
    assert fields(JobFields) == fields(SettingFields) | fields(BroughtFields)
    assert fields(BroughtFields) > fields(CarriedFields)
    assert fields(JobSettings) > fields(SettingFields)
    assert fields(Extras) > fields(BroughtFields)
    assert fields(JobDocument) > fields(JobFields)
    assert fields(StoredJob) > fields(JobFields)
    assert fields(Delivery) > fields(CarriedFields)


@pytest.mark.parametrize("name", sorted(fields(CarriedFields)))
def test_a_checksum_covers_what_a_job_carries(name: str) -> None:
    bare = Extras(origin="q")
    carrying = msgspec.structs.replace(bare, **{name: "x"})

    assert job_checksum("t", "1", bare) == job_checksum("t", "1", None)
    assert job_checksum("t", "1", carrying) != job_checksum("t", "1", bare)


class _Pair(msgspec.Struct, frozen=True, kw_only=True):
    left: int | None = None
    right: str | None = None


class _Single(msgspec.Struct, frozen=True, kw_only=True):
    middle: float | None = None


class _Open(msgspec.Struct):
    left: int | None = None
    right: str | None = None


def test_structs_are_joined_with_their_types_and_defaults() -> None:
    both = joined("Both", _Pair, _Single)

    assert both.__struct_fields__ == ("left", "right", "middle")
    assert msgspec.json.encode(both(middle=0.5)) == b'{"middle":0.5}'
    with pytest.raises(msgspec.ValidationError, match="Expected `int"):
        msgspec.json.decode(b'{"left":"1"}', type=both)


def test_a_struct_gets_fields_of_others_and_stays_what_it_is() -> None:
    wider: Any = with_fields(_Open, _Single)

    made = wider(1, "x", middle=0.5)

    assert isinstance(made, _Open)
    assert (wider.__name__, wider.__struct_fields__) == ("_Open", ("left", "right", "middle"))
    assert wider(2) == wider(left=2, right=None, middle=None)


def test_what_rooms_add_is_in_bodies_rows_and_documents() -> None:
    for room in ("batch", "budgets"):
        assert room in fields(JobBody)
        assert room in fields(JobDocument)
    assert "batch" in fields(Extras)
    assert "budgets" in fields(JobSettings)


def test_a_part_is_made_if_one_of_its_fields_has_a_value() -> None:
    part = part_of(_Pair, _Pair)

    assert part(_Open()) is None
    assert part(_Open(left=0)) == _Pair(left=0)
    assert part(_Open(right="")) == _Pair(right="")


class _Wide(msgspec.Struct):
    left: int | None = None
    other: str = "usual"


def test_what_two_structs_share_is_copied_but_for_what_is_given() -> None:
    make = maker(_Pair, _Wide, "other")

    assert make(_Pair(left=3, right="x"), other="given") == _Wide(left=3, other="given")
    assert maker(_Pair, _Open, "right")(_Pair(left=3, right="x"), right=None) == _Open(left=3)


def test_a_copy_has_what_is_made_of_other_fields() -> None:
    made = copier(_Single, {"left": lambda number: number + 1})
    source, bare = with_fields(_Open, _Single)(1), with_fields(_Open, _Single)()
    targets = with_fields(_Open, _Single)(), with_fields(_Open, _Single)(7)

    made(source, targets[0])
    made(bare, targets[1])

    assert [target.left for target in targets] == [2, 7]
    assert is_bare(_Open, _Single)(bare)
    assert not is_bare(_Single, _Open)(source)


def test_a_copy_takes_also_what_has_no_value() -> None:
    target = _Open(left=1, right="old")

    copier(_Pair)(_Pair(left=2), target)

    assert target == _Open(left=2)
