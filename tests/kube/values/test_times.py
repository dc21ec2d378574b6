"""Times are written in UTC in three precisions, and read only in RFC 3339 form."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kube.errors import BadValueError
from kube.values.times import (
    format_micro_time,
    format_milli_time,
    format_time,
    parse_time,
    time_or_none,
)

MOMENT = datetime(2026, 1, 31, 12, 0, 5, 123_456, tzinfo=UTC)


def test_a_time_is_cut_to_the_precision_of_its_field() -> None:
    assert format_time(MOMENT) == "2026-01-31T12:00:05Z"
    assert format_milli_time(MOMENT) == "2026-01-31T12:00:05.123Z"
    assert format_micro_time(MOMENT) == "2026-01-31T12:00:05.123456Z"


def test_a_time_with_an_offset_is_written_and_read_in_utc() -> None:
    berlin = timezone(timedelta(hours=1))
    assert format_time(MOMENT.astimezone(berlin)) == "2026-01-31T12:00:05Z"
    assert parse_time("2026-01-31T13:00:05.123456+01:00") == MOMENT


def test_a_time_outside_of_the_range_of_datetime_is_written_as_the_nearest_bound() -> None:
    first = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    assert format_time(first) == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "text", ["2026-01-31", "2026-01-31T12:00:00", "2026-13-01T00:00:00Z", "now"]
)
def test_a_text_that_is_no_time_with_an_offset_is_refused(text: str) -> None:
    with pytest.raises(BadValueError, match="expected a time such as 2026-01-31T12:00:00Z"):
        parse_time(text)
    assert time_or_none(text) is None
