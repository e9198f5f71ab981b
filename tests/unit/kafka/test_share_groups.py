"""Which texts show that a group is a share group."""

from __future__ import annotations

import pytest

from tieout.engine.kafka.share_groups import shows_share_group

SHOWN = {
    "kafka-share-groups --describe": ["GROUP  TOPIC   PARTITION  START-OFFSET", "loader  orders  0  17"],
    "with a lag": ["GROUP TOPIC PARTITION START-OFFSET LAG", "", "loader  orders  0  17  3"],
    "verbose": ["GROUP TOPIC PARTITION LEADER-EPOCH START-OFFSET LAG", "loader orders 0 - - -"],
    "among other groups": [
        "GROUP TOPIC PARTITION START-OFFSET LAG",
        "other orders 0 17 3",
        "loader orders 0 17 3",
    ],
    "without members": ["", "Share group 'loader' has no active members."],
    "kafka-groups --list": ["GROUP   TYPE      PROTOCOL", "other Consumer consumer", "loader Share share"],
    "kafka-consumer-groups --list --type": ["GROUP TYPE", "loader Share"],
    "a dump of the group's records": [
        'key: {"type":"11","data":{"groupId":"loader"}} payload: {"version":"0","data":{"epoch":3}}'
    ],
    "a formatter's document": ['{"key":{"type":15,"data":{"groupId":"loader"}},"value":null}'],
    "the state topic": [
        '{"key":{"type":1,"data":{"groupId":"loader","topicId":"RvIZdrYCQ4WoDqWQyH9RJQ","partition":0}},"value":null}'
    ],
}
NOT_SHOWN = {
    "a consumer group's table": [
        "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG",
        "loader orders 0 17 20 3",
    ],
    "rpk's table, which has where the log starts": [
        "TOPIC  PARTITION  CURRENT-OFFSET  LOG-START-OFFSET  LOG-END-OFFSET  LAG  MEMBER-ID",
        "orders  0  6  0  6  0  c-1",
    ],
    "a table with both offsets": [
        "GROUP TOPIC PARTITION CURRENT-OFFSET START-OFFSET LOG-END-OFFSET LAG",
        "loader orders 0 17 0 20 3",
    ],
    "another share group's table": ["GROUP TOPIC PARTITION START-OFFSET LAG", "other orders 0 17 3"],
    "a longer name": ["GROUP TOPIC PARTITION START-OFFSET LAG", "loader2 orders 0 17 3"],
    "two tables": [
        "GROUP TOPIC PARTITION START-OFFSET LAG",
        "other orders 0 17 3",
        "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG",
        "loader orders 0 17 20 3",
    ],
    "another type": ["GROUP TYPE PROTOCOL", "loader Consumer consumer", "share Share share"],
    "a topic called Share": ["GROUP TOPIC PARTITION CURRENT-OFFSET", "loader Share 0 17"],
    "a consumer group's records": ['key: {"type":"3","data":{"groupId":"loader"}} payload: {"version":"0"}'],
    "another share group's records": ['{"key":{"type":11,"data":{"groupId":"loader-2"}},"value":null}'],
    "a name that is no pattern": ["GROUP TYPE PROTOCOL", "l0ader Share share"],
    "nothing": [],
}


@pytest.mark.parametrize("lines", SHOWN.values(), ids=SHOWN.keys())
def test_a_text_that_shows_it(lines: list[str]) -> None:
    """Tables, listings, remarks and records, of the group that is asked for."""
    assert shows_share_group(lines, "loader")


@pytest.mark.parametrize("lines", NOT_SHOWN.values(), ids=NOT_SHOWN.keys())
def test_a_text_that_does_not(lines: list[str]) -> None:
    """Another group is of another type, and a consumer group may have the words in its topics."""
    assert not shows_share_group(lines, "loader")


def test_a_table_without_groups_is_the_group_s() -> None:
    """Before Kafka 4.1 the table may lack the column."""
    assert shows_share_group(["TOPIC PARTITION START-OFFSET", "orders 0 17"], "loader")
