"""The columns of tables of groups' positions, and what other tools and versions call them."""

from __future__ import annotations

from typing import Final

BEGINS: Final = ("GROUP", "TOPIC", "CONSUMER-ID")
COLUMNS: Final = frozenset(
    {
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LOG-START-OFFSET",
        "START-OFFSET",
        "LAG",
        "OWNER",
        "LEADER-EPOCH",
        "CONSUMER-ID",
        "MEMBER-ID",
        "INSTANCE-ID",
        "GROUP-INSTANCE-ID",
        "HOST",
        "CLIENT-ID",
        "ERROR",
        "COORDINATOR",
        "STATE",
        "TYPE",
        "PROTOCOL",
        "NEW-OFFSET",
        "STATUS",
        "#PARTITIONS",
        "#MEMBERS",
        "ASSIGNMENT",
        "ASSIGNED-PARTITIONS",
    }
)
_CHECKER: Final = {
    "Group": "GROUP",
    "Topic": "TOPIC",
    "Pid": "PARTITION",
    "Offset": "CURRENT-OFFSET",
    "logSize": "LOG-END-OFFSET",
    "Lag": "LAG",
    "Owner": "OWNER",
}
"""The columns of Kafka's ConsumerOffsetChecker, until 0.9."""
_ALIASES: Final = {
    "CONSUMER-GROUP": "GROUP",
    "CONSUMER-GROUP-ID": "GROUP",
    "GROUP-ID": "GROUP",
    "COMMITTED-OFFSET": "CURRENT-OFFSET",
    "END-OFFSET": "LOG-END-OFFSET",
    "CONSUMER-LAG": "LAG",
    "MESSAGES-BEHIND": "LAG",
    "GROUP-OFFSET": "CURRENT-OFFSET",
    "CONSUMER-OFFSET": "CURRENT-OFFSET",
    "NEWEST-OFFSET": "LOG-END-OFFSET",
    "OLDEST-OFFSET": "LOG-START-OFFSET",
}
"""What other tools call Kafka's own columns: user interfaces in what they export, kafkactl in its table."""


def name_of_column(cell: str) -> str:
    """Return Kafka's own name of a header's cell that is in capitals, or in the words of ConsumerOffsetChecker.

    >>> name_of_column("CURRENT OFFSET"), name_of_column("CONSUMER_OFFSET"), name_of_column("Pid")
    ('CURRENT-OFFSET', 'CURRENT-OFFSET', 'PARTITION')
    """
    name = cell.strip("`*").replace(" ", "-").replace("_", "-")
    return _CHECKER.get(cell) or _ALIASES.get(name, name)


def name_in_any_case(cell: str) -> str:
    """Return Kafka's own name of a header's cell in any case.

    >>> name_in_any_case("Consumer Group"), name_in_any_case("end_offset")
    ('GROUP', 'LOG-END-OFFSET')
    """
    return name_of_column(cell.upper())
