"""Which offsets a file's name says are in it, and which names say more than their file holds."""

from __future__ import annotations

import re

import pytest

from tieout.contracts.sources.connect import RANGE_NAME
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.range_names import RangeName, divided, range_name

_PATTERN = re.compile(RANGE_NAME)


@pytest.mark.parametrize(
    "name",
    [
        "orders.eu_1-x+3+0000000005+0000000009.json",
        "orders.eu_1-x+3+5+9",
        "orders.eu_1-x+3+5+9.snappy.parquet",
    ],
)
def test_a_name_of_the_hdfs_sink_is_read(name: str) -> None:
    """With zeros before its numbers or without, and with any ending."""
    assert range_name(name, _PATTERN) == RangeName("orders.eu_1-x", 3, 5, 9)


@pytest.mark.parametrize(
    "name",
    [
        "orders+0+5.json",
        "orders+0+9+5.json",
        "orders+0+5+9.json.tmp~",
        "+0+5+9.json",
        "orders+2147483648+5+9.json",
        "orders+0+5+4611686018427387904.json",
        f"orders+0+5+{'9' * 200}.json",
        "orders+0+\u0665+\u0669.json",
        "orders+0+-5+9.json",
    ],
)
def test_another_name_is_refused(name: str) -> None:
    """Without an end, with an end before its beginning, with numbers beyond all offsets or in other digits."""
    with pytest.raises(FormatError):
        range_name(name, _PATTERN)


def test_ranges_that_overlap_in_different_folders_are_reported() -> None:
    """A partitioner wrote them; in one folder they are an overlap of the connector's own."""
    same = [("out/a", RangeName("t", 0, 0, 9)), ("out/b", RangeName("t", 0, 5, 12))]
    apart = [
        ("out/x/a", RangeName("t", 0, 0, 9)),
        ("out/x/b", RangeName("t", 0, 2, 3)),
        ("out/y/c", RangeName("t", 0, 5, 12)),
    ]
    others = [("out/x/a", RangeName("t", 0, 0, 9)), ("out/y/c", RangeName("t", 1, 5, 12))]

    assert list(divided(same)) == []
    assert list(divided(apart)) == [("out/x/a", "out/y/c")]
    assert list(divided(others)) == []
