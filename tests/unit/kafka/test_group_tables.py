"""Tables of groups' positions in every version's form, and what of the text around them matters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tieout.engine.kafka.group_tables import GroupTables, tables_of

NOTE = "Note: This will not show information about old Zookeeper-based consumers."
IDLE = "Consumer group 'loader' has no active members."
PLAIN = "TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST  CLIENT-ID"
NAMED = f"GROUP   {PLAIN}"
VERBOSE = NAMED.replace("CURRENT", "LEADER-EPOCH  CURRENT")
ROW = "orders  0  6  9  3  -  -  -"
RPK = (
    "TOPIC   PARTITION  CURRENT-OFFSET  LOG-START-OFFSET  LOG-END-OFFSET  LAG  MEMBER-ID  CLIENT-ID  HOST",
    "orders  0          6               0                 9               3",
)
BLOCK = (
    *("GROUP        loader", "COORDINATOR  2", "STATE        Stable", "BALANCER     cooperative-sticky"),
    *("MEMBERS      1", "TOTAL-LAG    3"),
)

KAFKACTL = ("TOPIC      PARTITION      NEWEST_OFFSET     OLDEST_OFFSET     CONSUMER_OFFSET     LEAD     LAG",)
CONFLUENT = (
    "Cluster | Consumer Group | Lag | Log End Offset | Current Offset | Consumer | Instance | Topic | Partition",
    "--------+----------------+-----+----------------+----------------+----------+----------+-------+----------",
)
KAF = (
    *(
        "Group ID:       loader",
        "State:          Stable",
        "Protocol:       range",
        "Protocol Type:  consumer",
    ),
    *("Offsets:        ", "  orders:"),
    *(
        "    Partition  Group Offset  High Watermark  Lag  Metadata  ",
        "    ---------  ------------  --------------  ---  --------",
    ),
)
KAF_TOTAL = "    Total      6                             3    "


def _held(found: GroupTables, group: str = "loader") -> list[tuple[str, int, int | None, int | None]]:
    rows = [row for _, row in found.positions if row.group == group]
    return [(row.topic, row.partition, row.offset, row.end) for row in rows]


def _read(*lines: str) -> GroupTables:
    return tables_of(lines, "loader")


@pytest.mark.parametrize(
    "lines",
    [
        ("GROUP, TOPIC, PARTITION, CURRENT OFFSET, LOG END OFFSET, LAG, OWNER", "loader, orders, 0, 6, 9, 3, none"),
        ("Group  Topic  Pid Offset  logSize  Lag  Owner", "loader orders 0   6       9        3    none"),
        ("GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG OWNER", "loader orders 0 6 9 3 c-1_/10.0.0.1"),
        (NOTE, IDLE, PLAIN, ROW),
        (NOTE, "Warning: Consumer group 'loader' is rebalancing.", PLAIN, ROW),
        (PLAIN.removesuffix("  HOST  CLIENT-ID"), "orders  0  6  9  3  loader_host-1"),
        (NAMED, f"loader  {ROW}"),
        (VERBOSE, "loader  orders  0  4  6  9  3  c-1-aa  /10.0.0.1  c 1"),
        (VERBOSE, "loader  orders  0  -  6  9  3  -  -  -"),
        (PLAIN, "orders  0  6  9  3  orders-loader-01-e12431ea-8ba0-420c-9be7-70c30840f59a/10.0.0.1  orders-loader-01"),
        (*BLOCK, *RPK),
        (BLOCK[0], "COORDINATOR-NODE  0", "COORDINATOR-PARTITION  __consumer_offsets/7", *BLOCK[2:], *RPK),
        (*RPK,),
        (NAMED.replace("  ", "\t"), f"loader\t{ROW}".replace("  ", "\t")),
        (f"| {NAMED.replace('  ', ' | ')} |", "|---|---|---|---|---|---|---|---|---|",
         "| loader | orders | 0 | 6 | 9 | 3 | - | - | - |"),
        (f"\x1b[1m{NAMED}\x1b[0m", f"\x1b[32mloader\x1b[0m  {ROW}"),
        (f"> {NAMED}", f"> loader {ROW}"),
        (f"tools-1  | {NAMED}", f"tools-1  | loader {ROW}"),
        (f"2026-11-20T10:00:00Z {NAMED}", f"2026-11-20T10:00:01Z loader {ROW}"),
        (*KAFKACTL, "orders     0              9                 0                 6                   6        3"),
        (*CONFLUENT,
         "lkc-1   | loader         |   3 |              9 |              6 | c-1     |          | orders | 0"),
        (*KAF, "    0          6             9               3    ", KAF_TOTAL, "Members: ", "  c-1:", "    Host:  /h"),
    ],
    ids=lambda lines: lines[0][:40],
)  # fmt: skip
def test_every_version_s_table_is_read_by_its_header(lines: tuple[str, ...]) -> None:
    """Whatever the columns are called and wherever they stand."""
    found = _read(*lines)

    assert _held(found) == [("orders", 0, 6, 9)]
    assert found.faults == ()


@pytest.mark.parametrize("version", ["2.0", "2.8"])
def test_what_old_tools_printed_is_read(version: str) -> None:
    """Recorded: the tool of 2.0 for one group, that of 2.8 for all, each with what it wrote to its other output."""
    text = (Path(__file__).parents[2] / "kafka_files" / "text" / f"kafka-{version}.describe.txt").read_text()

    found = _read(*text.splitlines())

    assert sorted(_held(found)) == [("orders", 0, 6, 6), ("orders", 1, 5, 6)]
    assert (found.faults, len(found.passed)) == ((), 3)


NOISE = (
    "Picked up JAVA_TOOL_OPTIONS: -Xmx64m -Dgroup=1",
    "SLF4J: Failed to load class \"org.slf4j.impl.StaticLoggerBinder\".",
    "log4j:WARN No appenders could be found for logger (kafka.admin.ConsumerGroupCommand).",
    "OpenJDK 64-Bit Server VM warning: Options -Xverify:none were deprecated in JDK 13.",
    "[2026-11-20 10:00:00,123] WARN Couldn't resolve server kafka-9:9092 (org.apache.kafka.clients.ClientUtils)",
    "Defaulted container \"kafka\" out of: kafka, metrics",
    "command terminated with exit code 1",
    "Unable to use a TTY - input is not a terminal or the right kind of file",
    "me@host:~$ kafka-consumer-groups.sh --bootstrap-server b:9092 --describe --group loader | tee group.txt",
    "```text",
    "Error: Consumer group 'audit' does not exist.",
    "Error: Executing consumer group command failed due to org.apache.kafka.common.errors.TimeoutException: 1 2 3",
    "\tat java.base/java.util.concurrent.CompletableFuture.get(CompletableFuture.java:396)",
    "Error from server (NotFound): pods \"kafka-9\" not found",
    "Note: This will only show information about consumers that use the Java consumer API.",
    "[2026-11-20 10:00:00,123] WARN [Consumer clientId=c-1, groupId=loader] Connection to node -1 was lost",
)  # fmt: skip


@pytest.mark.parametrize("noise", NOISE, ids=lambda noise: noise[:30])
@pytest.mark.parametrize("place", ["before", "between", "amid", "after"])
@pytest.mark.parametrize("is_named", [True, False], ids=["GROUP", "no GROUP"])
def test_lines_around_a_table_cost_nothing(noise: str, place: str, is_named: bool) -> None:
    """Warnings of Java and kubectl, prompts, the command itself, errors about another group."""
    header, begin = (NAMED, "loader ") if is_named else (PLAIN, "")
    rows = [f"{begin}{ROW}", f"{begin}{ROW.replace('  0  ', '  1  ')}"]
    lines = {
        "before": [noise, header, *rows],
        "between": [
            header,
            *rows,
            "",
            noise,
            "",
            "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS",
            "loader c /h c 2",
        ],
        "amid": [header, rows[0], noise, rows[1]],
        "after": [header, *rows, noise],
    }[place]
    if place == "amid" and "kafka-consumer-groups.sh" in noise:
        lines = [noise, *lines[:2], lines[3]]

    found = _read(*lines)

    assert _held(found) == [("orders", 0, 6, 9), ("orders", 1, 6, 9)]
    assert found.faults == ()


@pytest.mark.parametrize(
    "wrong",
    [
        "Error: Consumer group 'loader' does not exist.",
        "Consumer group `loader` does not exist or is rebalancing.",
        "Error: The consumer group 'loader' does not exist.",
        "Error: Executing consumer group command failed due to GroupAuthorizationException: group loader",
        "[2026-11-20 10:00:00,123] ERROR Request for groupId=loader failed (kafka.admin.ConsumerGroupCommand)",
        "Error: Could not fetch offset from kafka for group 'loader' partition 'orders-1' due to unknown.",
        "Error: No broker for partition 'orders-1'",
        "loader orders 1 6",
        "loader ord",
        "load",
        "loader  orders  x1  6  9  3  -  -  -",
        "loader  orders  1  6,5  9  3  -  -  -",
        "loader  orders  12345678901  6  9  3  -  -  -",
    ],
)
def test_what_concerns_the_group_is_a_fault(wrong: str) -> None:
    """An error about it, and a row of its table that is not whole."""
    found = _read(NAMED, f"loader {ROW}", wrong)

    assert [number for number, _ in found.faults] == [2]


def test_what_the_tool_writes_to_its_other_output_comes_where_it_likes() -> None:
    """A remark about another group, amid a table whose rows name their groups, is not about its rows."""
    remark = "Consumer group 'audit' has no active members."
    torn = _read(remark, NAMED, f"audit {ROW}", "loader orders 1 6")
    amid = _read(NAMED, f"audit {ROW}", remark, f"loader {ROW}")

    assert [number for number, _ in torn.faults] == [3]
    assert (_held(amid), amid.faults) == ([("orders", 0, 6, 9)], ())


@pytest.mark.parametrize("torn", ["orders 1 6", "orders 1", "ord", "orders 1 6 9", "orders - 6 9 3 - - -"])
def test_a_torn_row_of_a_table_without_group_is_a_fault(torn: str) -> None:
    """The table is the group's, so each of its rows is."""
    assert [number for number, _ in _read(PLAIN, ROW, torn).faults] == [2]


@pytest.mark.parametrize("torn", ["audit orders 1", "audit orders x 6", "aud", "audit"])
def test_a_torn_row_of_another_group_is_none_of_its_business(torn: str) -> None:
    """It is counted as a line that says nothing."""
    found = _read(NAMED, f"loader {ROW}", torn)

    assert (found.faults, found.passed) == ((), (2,))


@pytest.mark.parametrize(
    "above",
    [
        ("Consumer group 'audit' has no active members.",),
        ("GROUP  audit", "STATE  Empty"),
        ("$ kafka-consumer-groups.sh --bootstrap-server b:9092 --describe --group audit",),
        ("$ kafka-consumer-groups.sh --bootstrap-server b:9092 \\", "    --describe --group=audit"),
        (
            "$ kafka-consumer-groups.sh --describe --group x",
            "$ kafka-consumer-groups.sh \\",
            "  --describe --group audit",
        ),
        ("$ rpk group describe audit -c",),
        ("$ kafkactl --context prod describe consumer-group --topic orders audit",),
        ("$ rpk -X brokers=b:9092 group describe -X user=u 'audit'",),
    ],
)
def test_a_table_that_the_text_says_to_be_another_group_s_is_never_the_group_s(
    above: tuple[str, ...],
) -> None:
    """A block, a remark or the command names whose it is."""
    found = _read(*above, PLAIN, ROW)

    assert _held(found) == []
    assert _held(found, "audit") == [("orders", 0, 6, 9)]


@pytest.mark.parametrize(
    "lines",
    [
        (PLAIN, ROW, PLAIN, "orders  0  8  9  1  -  -  -"),
        ("$ rpk group describe -c loader audit", *RPK, *RPK),
        ("$ rpk group describe -c loader audit", *RPK),
    ],
)
def test_of_several_tables_without_a_name_none_is_the_group_s(lines: tuple[str, ...]) -> None:
    """Which is which nothing says: each row is unreadable."""
    found = _read(*lines)

    assert found.positions == ()
    assert len(found.faults) >= 1
    assert all("which of them is that of loader nothing says" in reason for _, reason in found.faults)


def test_a_name_is_that_of_the_next_table_alone() -> None:
    """A remark about one group says nothing of the table behind that group's."""
    found = _read(
        "Consumer group 'audit' has no active members.", PLAIN, ROW, "", PLAIN, "orders  0  8  9  1  -  -  -"
    )

    assert (_held(found, "audit"), _held(found)) == ([("orders", 0, 6, 9)], [("orders", 0, 8, 9)])


def test_a_line_without_the_prefix_of_its_table_is_no_row_of_it() -> None:
    """What stands before the header stands before each row."""
    for prefix in (">", "tools-1  |", "2026-11-20 10:00:00"):
        found = _read(
            f"{prefix} {PLAIN}",
            f"{prefix} {ROW}",
            "at 1 orders  1  6  9  3  -  -  -",
            "at orders  1  6  9  3",
        )

        assert _held(found) == [("orders", 0, 6, 9)]


def test_tables_of_several_groups_are_each_their_own() -> None:
    """One output, one group after another, the last with a name of several words."""
    lines = [
        *("GROUP  audit", "STATE  Dead", "ERROR  not coordinator", ""),
        *(*BLOCK, "", *RPK, ""),
        *("GROUP  billing", "STATE  Empty", "", RPK[0], RPK[1].replace(" 6 ", " 9 ", 1)),
    ]
    named = [NAMED, f"my own group {ROW}", "", NAMED, f"loader {ROW}"]

    assert (_held(_read(*lines)), _read(*lines).faults) == ([("orders", 0, 6, 9)], ())
    assert _held(_read(*lines), "billing") == [("orders", 0, 9, 9)]
    assert _held(_read(*named), "my own group") == [("orders", 0, 6, 9)]
    assert _held(tables_of(named, "my own group"), "my own group") == [("orders", 0, 6, 9)]


@pytest.mark.parametrize("cell", ["-", "unknown", "none", "N/A", "-1"])
def test_a_partition_without_a_position_has_none(cell: str) -> None:
    """Whatever the version calls it; the row is whole."""
    found = _read(
        NAMED,
        f"loader {ROW}".replace("  6  ", f"  {cell}  "),
        "loader - - - - - c-2 /h c",
        "audit - - - - - c /h c",
    )

    assert _held(found) == [("orders", 0, None, 9)]
    assert (found.faults, found.idle) == ((), 1)


@pytest.mark.parametrize("member", [("c-1-aa", "c", "/h"), ("", "", "")], ids=["a member", "none"])
def test_a_partition_that_the_tool_reports_an_error_for_is_a_fault(member: tuple[str, ...]) -> None:
    """`rpk` has a column for it where any row has one; the cells before it may be empty."""
    cells = [
        (*RPK[0].split(), "ERROR"),
        ("orders", "0", "6", "0", "9", "3", *member, ""),
        ("orders", "1", "6", "0", "9", "3", *member, "NOT_LEADER: not here"),
    ]
    lines = ["  ".join(cell.ljust(16) for cell in row) for row in cells]

    found = _read(*BLOCK, *lines)

    assert _held(found) == [("orders", 0, 6, 9)]
    assert [reason for _, reason in found.faults] == ["the tool reports an error for this partition"]


def test_an_error_of_rpk_s_block_is_the_group_s() -> None:
    """The block that names the group has the error."""
    assert len(_read(*BLOCK, "ERROR        COORDINATOR_NOT_AVAILABLE").faults) == 1
    assert _read("GROUP  audit", "ERROR  COORDINATOR_NOT_AVAILABLE", *BLOCK, *RPK).faults == ()


def test_other_tables_of_the_tool_are_no_positions() -> None:
    """Members, states, new offsets of a reset, deleted offsets, lag per topic: none says where the group stands."""
    lines = [
        *(
            "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS ASSIGNMENT",
            "loader c-1-aa /10.0.0.1 c 2 orders(0,1)",
        ),
        *(
            "GROUP  COORDINATOR (ID)  ASSIGNMENT-STRATEGY  STATE  #MEMBERS",
            "loader  b:9092 (1)  range  Stable  1",
        ),
        *("GROUP TOPIC PARTITION NEW-OFFSET", "loader orders 0 0"),
        *("TOPIC PARTITION STATUS", "orders 0 Successful"),
        *("TOPIC LAG", "orders 3"),
        *("GROUP STATE", "loader Stable"),
    ]

    found = _read(*lines)

    assert (found.positions, found.faults) == ((), ())


def test_rows_without_their_header_are_faults() -> None:
    """`grep loader` leaves them: which number is the position only the header says."""
    found = _read("loader orders 0 6 9 3 - - -", "orders 1 6 9 3 - - -")

    assert found.positions == ()
    assert [number for number, _ in found.faults] == [0, 1]


@pytest.mark.parametrize(
    "torn",
    [
        "orders  0  6  9  3  -  -",
        "orders  0  6  9  3  -  -  -  12  -  -",
        "orders  0  6  9  3  -  -  \0\0\0\0",
        "orders  0  6  9  3  c-1-aa  /10.0.0.1",
    ],
)
@pytest.mark.parametrize("header", [PLAIN, NAMED], ids=["no GROUP", "GROUP"])
def test_a_row_without_a_cell_for_each_column_was_cut_and_rows_after_it_may_be_gone(
    header: str, torn: str
) -> None:
    """Kafka's tool prints `-` where there is nothing; only a member's names have blanks in them."""
    found = _read(header, f"loader  {torn}" if header is NAMED else torn)

    assert found.positions == ()
    assert [number for number, _ in found.faults] == [1]


@pytest.mark.parametrize(
    "torn", ["ord", "orders", "orders,", "orders,1", "orders;1,6", "orders\x1c,1,6", "\0"]
)
def test_what_looks_like_a_row_of_an_export_is_a_fault(torn: str) -> None:
    """A file that was cut or damaged has a line that is no row; without any row the line says nothing."""
    assert [number for number, _ in _read("orders,0,6", torn).faults] == [1]
    assert _read("# kafka-consumer-groups --export", "exit").faults == ()
    assert _read("orders,0,6", "exit").faults == ()


def test_an_export_is_read_between_other_lines() -> None:
    """Its rows have no header; a row that is cut off is a fault."""
    found = _read(
        *(
            "Picked up JAVA_TOOL_OPTIONS: -Xmx64m",
            "orders,0,6",
            '"my group",orders,1,7',
            "orders,1",
            "Done, all",
        ),
        "orders,12345678901,7",
    )

    assert [(row.group, row.partition, row.offset) for _, row in found.positions] == [
        ("loader", 0, 6),
        ("my group", 1, 7),
    ]
    assert ([number for number, _ in found.faults], found.passed) == ([3, 5], (0, 4))


_SHARE = [
    "",
    "GROUP           TOPIC           PARTITION  START-OFFSET  LAG",
    "loader          orders          0          6             4",
    "loader          orders          1          -             -",
]
_VERBOSE = [
    "GROUP           TOPIC           PARTITION  LEADER-EPOCH  START-OFFSET  LAG",
    "loader          orders          0          2             6             4",
    "loader          orders          1          -             -             -",
]


@pytest.mark.parametrize(("lines", "epoch"), [(_SHARE, None), (_VERBOSE, 2)], ids=["4.3", "4.3, verbose"])
def test_a_share_group_s_position_is_its_start_offset(lines: list[str], epoch: int | None) -> None:
    """Nothing before it is given to a member any more; a partition that nobody has taken from has none."""
    found = _read("$ kafka-share-groups.sh --describe --group loader", *lines)

    held = {(one.partition, one.offset, one.leader_epoch) for _, one in found.positions}
    assert held == {(0, 6, epoch), (1, None, None)}
    assert found.faults == ()


def test_a_share_group_s_table_without_a_column_for_it_is_of_whom_the_text_speaks() -> None:
    """The remark of the tool, or the command."""
    table = ("TOPIC PARTITION START-OFFSET", "orders 0 6")

    assert _read("Share group 'loader' has no active members.", *table).groups == {"loader"}
    assert _read("kafka-share-groups --describe --group other", *table).groups == {"other"}


def test_a_cut_row_of_a_share_group_is_a_fault() -> None:
    """So is what the tool says where the group is not there."""
    cut = _read(_SHARE[1], "loader          orders          0          6")
    absent = _read(
        "Error: Executing share group command failed due to "
        "org.apache.kafka.common.errors.GroupIdNotFoundException: Group loader not found."
    )

    assert (len(cut.faults), cut.positions) == (1, ())
    assert (len(absent.faults), absent.positions) == (1, ())


@pytest.mark.parametrize(
    "lines",
    [
        ("Topic,Partition,Current Offset,End Offset,Messages Behind", "orders,0,6,9,3"),
        ("Consumer Group,Topic,Partition,Current Offset,End Offset,Consumer Lag", "loader,orders,0,6,9,3"),
        ("group_id;topic;partition;committed_offset;end_offset;lag", "loader;orders;0;6;9;3"),
        ("Group\tTopic\tPartition\tCurrent Offset\tLog End Offset\tLag", "loader\torders\t0\t6\t9\t3"),
        ('"topic","partition","current offset","end offset"', '"orders","0","6","9"'),
    ],
    ids=lambda lines: lines[0][:40],
)
def test_headers_are_read_in_any_case_and_with_blanks(lines: tuple[str, ...]) -> None:
    """What user interfaces export has their own spelling of Kafka's columns."""
    found = _read(*lines)

    assert _held(found) == [("orders", 0, 6, 9)]
    assert (found.faults, found.passed) == ((), ())


@pytest.mark.parametrize(
    ("header", "row", "columns"),
    [
        ("Consumer Group,Topic,Partition,Consumer Lag", "loader,orders,0,4", "GROUP, TOPIC, PARTITION, LAG"),
        ("Topic,Partition,End Offset", "orders,0,6", "TOPIC, PARTITION, LOG-END-OFFSET"),
        ("topic,partition,offset", "orders,0,6", "TOPIC, PARTITION, OFFSET"),
    ],
)
def test_numbers_that_are_no_positions_are_none(header: str, row: str, columns: str) -> None:
    """A lag, an end, or an offset of which nothing says whose it is, is not where the group stands."""
    found = _read(header, row)

    assert found.positions == ()
    assert found.others == (columns,)


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("Gruppe,Thema,Teil,Abstand", "loader,orders,0,4"),
        ("Topic Name, Partition #, Newest", "orders,0,6"),
        ("tpc,part,end", "orders,0,6"),
    ],
)
def test_a_header_that_is_not_known_is_not_passed_over(header: str, row: str) -> None:
    """Its rows look like those of an export without a header, whose last number is a position."""
    found = _read(header, row)

    assert found.positions == ()
    assert [(number, reason[:34]) for number, reason in found.faults] == [
        (1, "expected the columns of positions ")
    ]


def test_a_row_with_more_cells_than_its_header_is_none() -> None:
    """A number may have a comma in it."""
    found = _read("Topic,Partition,Current Offset,End Offset", "orders,0,1,234,1,300")

    assert found.positions == ()
    assert len(found.faults) == 1


def test_a_quoted_number_with_a_comma_is_one_cell() -> None:
    """Cut in two, it would fill the empty cells of a member's columns, and 1,244 would be position 1."""
    header = "Topic,Partition,Current Offset,End Offset,Lag,Consumer ID,Host"

    assert _held(_read(header, 'orders,0,6,9,3,"c,1",')) == [("orders", 0, 6, 9)]
    found = _read(header, 'orders,0,"1,244","1,244",0,,')

    assert found.positions == ()
    assert len(found.faults) == 1


def test_a_row_that_is_wider_than_an_export_asks_for_its_header() -> None:
    """It is whole, so that pasting it whole again would not help."""
    found = _read("orders,0,6,9,3")

    assert [reason for _, reason in found.faults if "found 5 cells; give the table its header" in reason]


@pytest.mark.parametrize("option", ["--to-latest", "--to-earliest", "--to-offset 6", "--shift-by -2"])
@pytest.mark.parametrize(
    "begins", ["--group loader --reset-offsets {} --dry-run --export", "--group loader \\\n  {} --export"]
)
def test_only_an_export_of_current_offsets_has_positions(option: str, begins: str) -> None:
    """Any other says where a group would be put; nothing was committed there."""
    command = f"$ kafka-consumer-groups.sh --bootstrap-server b:9092 {begins.format(option)}".split("\n")
    current = "$ kafka-consumer-groups.sh --group loader --reset-offsets --to-current --dry-run --export"

    found = _read(*command, "orders,0,6", current, "orders,1,7")

    assert _held(found) == [("orders", 1, 7, None)]
    assert [(number, option.split(maxsplit=1)[0] in reason) for number, reason in found.faults] == [
        (len(command), True)
    ]


@pytest.mark.parametrize(
    ("lines", "torn"),
    [
        (KAFKACTL, "orders     1              9      "),
        (CONFLUENT, "  lkc-1a2b | loader         |   3 |              9 |  6 | c-1 | "),
        (CONFLUENT, "  lkc-1a2b | load"),
        (KAF, "    1          6"),
    ],
    ids=["kafkactl", "confluent", "confluent group", "kaf"],
)
def test_a_torn_row_of_another_tool_s_table_is_a_fault(lines: tuple[str, ...], torn: str) -> None:
    """Whatever the order of its columns is: also where the group's column is not the first."""
    assert [number for number, _ in _read(*lines, torn).faults] == [len(lines)]


def test_other_groups_and_partitions_without_position_in_other_tools_tables() -> None:
    """A position of -1 is none; the rows of several topics, and those of another group, are told apart."""
    members = (
        "",
        "CLIENT_HOST   CLIENT_ID   TOPIC   ASSIGNED_PARTITIONS",
        "10.0.0.1      12          orders  0,1",
    )
    kafkactl = _read(*KAFKACTL, "orders 0 9 0 -1 -1 9", *members)
    confluent = _read(*CONFLUENT, "  lkc | audit | 3 | 9 | 6 | c | | orders | 0", "  lkc | aud")
    second = ("", "  payments:", *KAF[6:], "    1  4  5  1", KAF_TOTAL)
    kaf = _read(*KAF, "    0  -1  9  10  by hand", KAF_TOTAL, *second)
    another = _read(KAF[0].replace("loader", "audit"), *KAF[1:], "    0  6  9  3")

    assert _held(kafkactl) == [("orders", 0, None, 9)]
    assert (_held(confluent), _held(confluent, "audit"), confluent.faults) == ([], [("orders", 0, 6, 9)], ())
    assert _held(kaf) == [("orders", 0, None, 9), ("payments", 1, 4, 5)]
    assert (_held(another), _held(another, "audit")) == ([], [("orders", 0, 6, 9)])
    assert not kafkactl.faults + kaf.faults + another.faults
