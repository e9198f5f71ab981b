r"""What the console consumer prints of `__consumer_offsets`, with the formatter of any version, as commits.

Kafka 4 prints a JSON document for each commit, one behind another without line ends. Before, each has a line:

    [loader,orders,0]::OffsetAndMetadata(offset=17, leaderEpoch=Optional[0], metadata=, commitTimestamp=…, …)
    [loader,orders,0]::[OffsetMetadata[17,NO_METADATA],CommitTime …,ExpirationTime …]
    [loader,orders,0]::NULL

the second form until Kafka 2.0, the third for a position that was deleted. Lines that cannot be a commit of the group,
such as another group's, a group's membership or a warning of Java, are passed over and counted; what may be a part of
one is an unreadable row.

Source: `OffsetsMessageFormatter` and `GroupMetadataMessageFormatter` of Apache Kafka 0.8 to 4.3.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.contracts import KafkaOffsetsSource
from tieout.engine.materialising import materialised
from tieout.engine.sources.discovery import inputs_of
from tieout.engine.sources.json_lines import json_fault
from tieout.engine.sources.lines import lines_of
from tieout.engine.sources.source import FAULT, HIDDEN, TEXT, Reading, Request, unread

COMMIT_TYPES: Final = (0, 1)
"""The key types of commits."""
LAST_TYPE: Final = 24
"""The highest type of a key that Kafka 4.3 writes; all but the first two are about memberships."""
_UNKNOWN_ABORTS: Final = (
    "the formatter does not tell commits of aborted transactions: print with --isolation-level read_committed"
)
_DOCUMENT: Final = (
    "key STRUCT<version: STRING, type: STRING, data: STRUCT<group: STRING, topic: STRING, partition: STRING>>, "
    "value STRUCT<version: STRING, data: STRUCT<offset: STRING, leaderEpoch: STRING, metadata: STRING, "
    "commitTimestamp: STRING, topicId: STRING>>"
)
_BETWEEN: Final = r'(?<=\})\s*(?=\{"key":)'
_FAREWELL: Final = r"(\^C)?Processed a total of [0-9]+ messages\s*$"
_PREFIX: Final = (
    r"^\s*(?:\[[^\[\]]*\]|[\w./-]+\s+\||\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d))\s+"
    r'(?=\[|\{"key":|\S+::)'
)
"""What containers and loggers write before each line: a pod or a time in brackets, a service and a bar, a time."""
_KEY: Final = r"^\s*\[(.*?),([A-Za-z0-9._-]+),([0-9]{1,10})\]::"
_SINCE_2_1: Final = (
    _KEY + r"OffsetAndMetadata\(offset=(-?[0-9]+), leaderEpoch=Optional[A-Za-z]*(?:\.empty|\[([0-9]+)\]), "
    r"metadata=(.*), commitTimestamp(?:Ms)?=([0-9]+), expireTimestamp(?:Ms)?=.*\)\s*$"
)
_BEFORE_2_1: Final = (
    _KEY + r"\[OffsetMetadata\[(-?[0-9]+)(),(.*)\],CommitTime ([0-9]+),ExpirationTime -?[0-9]+\]\s*$"
)
_BEFORE_0_9: Final = _KEY + r"OffsetAndMetadata\[(-?[0-9]+)(),(.*?)(?:,([0-9]+))?\]\s*$"
_DELETED: Final = _KEY + r"NULL\s*$"
_MEMBERSHIP: Final = r"^\s*[^\[\s].*::(GroupMetadata\(|\[|NULL\s*$)"
_PART: Final = (
    r"::|OffsetAndMetadata[\(\[]|OffsetMetadata\[|leaderEpoch|commitTimestamp|expireTimestamp|CommitTime [0-9]|"
    r'ExpirationTime|"(key|value|group|topic|partition|offset|metadata)"\s*:'
)
_NO_COMMIT: Final = (
    "a commit that is cut off, wrapped or behind something else on its line; take away what stands before it, and "
    "paste lines whole"
)
_EXCEPTION: Final = r"^\s*(Exception in thread |([A-Za-z_$][\w$]*\.)+[\w$]*(Exception|Error)\b)"
_CUTTING: Final = r"consumer.*(\|\s*(head|tail|sed|awk)\b|--max-messages\b)"
"""A command whose output is incomplete."""
_TIMEOUT: Final = r"TimeoutException"
"""How the tool ends when run with `--timeout-ms`."""
_ENDED: Final = "the tool ended early: what it would have printed behind is not there; run it again"
_COMMIT, _OTHER_GROUP, _TOMBSTONE, _MEMBER, _OTHER_LINE, _BROKEN = (
    "commit",
    "another",
    "deleted",
    "membership",
    "nothing",
    "broken",
)
_COLUMNS: Final = (
    *("consumer_group", "topic", "topic_id", "partition", "committed_offset", "leader_epoch", "committed_at"),
    "metadata",
)


def read_text(spec: KafkaOffsetsSource, paths: tuple[str, ...], request: Request) -> Reading:
    """Return the group's commits in the text; what may be a part of one is an unreadable row."""
    inputs = inputs_of(request.spark, paths, request.base_dir, "text")
    if not inputs.readable:
        return unread(inputs, request.now)
    found = materialised(_sorted(lines_of(request.spark, inputs.readable), spec.group))
    counts = {row["kind"]: row["count"] for row in found.groupBy("kind").count().collect()}
    has_no_commit = not any(counts.get(kind) for kind in (_COMMIT, _OTHER_GROUP, _TOMBSTONE, _BROKEN))
    missing = (_EXPECTED,) if has_no_commit else ()
    taken_at = spec.taken_time(request.now)
    is_reported = F.col("kind").isin(_COMMIT, _BROKEN)
    return Reading(
        rows=found.where(is_reported).select(*_COLUMNS, *HIDDEN),
        is_present=True,
        read_at=request.now if taken_at is None else taken_at,
        size=inputs.size,
        digests=inputs.digests,
        unparsed_inputs=len(inputs.faults) + len(missing),
        notes=(*inputs.notes, *missing, _UNKNOWN_ABORTS, *_count_notes(counts, spec.group)),
        complete_until=taken_at,
    )


_EXPECTED: Final = (
    "expected what the console consumer prints of __consumer_offsets with OffsetsMessageFormatter, lines "
    '`[group,topic,partition]::…` or documents `{"key":…}`, found none'
)


def _count_notes(counts: Mapping[str, int], group: str) -> Iterator[str]:
    texts = {
        _TOMBSTONE: f"positions of {group} were deleted, at times that the text does not say",
        _OTHER_GROUP: "commits of other groups, passed over",
        _MEMBER: "records about memberships, passed over",
        _OTHER_LINE: "lines that are no commit, passed over",
    }
    yield from (f"{counts[kind]} {text}" for kind, text in texts.items() if counts.get(kind))
    if not counts.get(_COMMIT):
        yield f"no commit of the group {group}"


def _sorted(lines: DataFrame, group: str) -> DataFrame:
    """Return each document or line as a commit, with the kind of thing that it is.

    | line                                  | kind       | topic  | partition | committed_offset |
    |---------------------------------------|------------|--------|-----------|------------------|
    | `[loader,orders,0]::OffsetAndMeta…`   | commit     | orders | 0         | 17               |
    | `[audit,orders,0]::OffsetAndMetadata` | another    | …      |           |                  |
    | `loader::GroupMetadata(…`             | membership |        |           |                  |
    """
    text = F.regexp_replace(F.regexp_replace(TEXT, _FAREWELL, ""), _PREFIX, "")
    parts = F.when(F.contains(text, F.lit('{"key":')), F.split(text, _BETWEEN)).otherwise(F.array(text))
    documents = lines.select("*", F.explode(parts).alias("document")).where(F.trim("document") != "")
    is_json = F.col("document").rlike(r'^\s*\{"key"\s*:')
    parsed = documents.withColumns(
        {
            "line": _printed(),
            "parsed": F.when(is_json, F.from_json("document", _DOCUMENT, {"mode": "PERMISSIVE"})),
            "broken": F.when(is_json, json_fault("document")),
            "kind": F.lit(None).cast("string"),
        }
    )
    kind = F.when(is_json, _kind_of_document(group)).otherwise(_kind_of_line(group))
    key, value, line = F.col("parsed.key.data"), F.col("parsed.value.data"), F.col("line")
    return parsed.withColumn("kind", kind).select(
        "kind",
        F.coalesce(key["group"], line["group"]).alias("consumer_group"),
        F.coalesce(key["topic"], line["topic"]).alias("topic"),
        value["topicId"].alias("topic_id"),
        F.coalesce(key["partition"], line["partition"]).alias("partition"),
        F.coalesce(value["offset"], line["offset"]).alias("committed_offset"),
        F.coalesce(F.when(value["leaderEpoch"] != "-1", value["leaderEpoch"]), line["epoch"]).alias(
            "leader_epoch"
        ),
        F.coalesce(value["commitTimestamp"], line["at"]).alias("committed_at"),
        F.coalesce(F.rtrim(value["metadata"], F.lit("\0")), line["metadata"]).alias("metadata"),
        *HIDDEN[:-1],
        F.when(F.col("kind") == _BROKEN, F.coalesce("broken", _fault())).alias(FAULT),
    )


def _is_an_end() -> Column:
    """Return whether the line shows that the tool did not print everything: it failed, or had a limit."""
    text = F.col("document")
    return (text.rlike(_EXCEPTION) & ~text.rlike(_TIMEOUT)) | text.rlike(_CUTTING)


def _fault() -> Column:
    return F.when(_is_an_end() & ~F.col("document").rlike(_PART), _ENDED).otherwise(_NO_COMMIT)


def _printed() -> Column:
    """Return the fields of a line in one of the forms before Kafka 4, null where it is in none."""
    names = ("group", "topic", "partition", "offset", "epoch", "metadata", "at")

    def read_as(form: str) -> Column:
        fields = (_matched(form, place).alias(name) for place, name in enumerate(names, start=1))
        return F.when(F.col("document").rlike(form), F.struct(*fields))

    return F.coalesce(*(read_as(form) for form in (_SINCE_2_1, _BEFORE_2_1, _BEFORE_0_9)))


def _matched(form: str, place: int) -> Column:
    """Return what a part of the form matched; null where it is empty, and where it says that there are no metadata."""
    found = F.regexp_extract("document", form, place)
    return F.when((found != "") & (found != "NO_METADATA"), found)


def _kind_of_document(group: str) -> Column:
    """Return the kind of a document of Kafka 4; keys of other types than a commit's are about memberships."""
    key, key_type = (
        F.col("parsed.key.data"),
        F.coalesce(F.col("parsed.key.type"), F.col("parsed.key.version")),
    )
    named = F.regexp_extract("document", r'"group":"((?:[^"\\]|\\.)*)"', 1)
    is_another_s = (named != "") & (named != json.dumps(group, ensure_ascii=False)[1:-1])
    is_commit = key_type.isin(*map(str, COMMIT_TYPES))
    return (
        F.when(F.col("broken").isNotNull() & is_another_s, _OTHER_GROUP)
        .when(F.col("broken").isNotNull() | key_type.isNull(), _BROKEN)
        .when(~is_commit, _MEMBER)
        .when(key["partition"].isNull() | key["group"].isNull(), _BROKEN)
        .when(key["group"] != group, _OTHER_GROUP)
        .when(F.col("parsed.value").isNull(), _TOMBSTONE)
        .when(F.col("parsed.value.data.offset").isNull(), _BROKEN)
        .otherwise(_COMMIT)
    )


def _kind_of_line(group: str) -> Column:
    """Return the kind of a line without a document: a commit, another group's, a part of one, or none."""
    begin, text = F.lit(f"[{group},"), F.trim("document")
    is_own = F.regexp_extract("document", _KEY, 1) == group
    has_key = F.col("document").rlike(_KEY)
    has_own_key_behind = F.col("document").rlike(rf"\Q[{group},\E[A-Za-z0-9._-]+,[0-9]{{1,10}}\]::")
    return (
        F.when(has_key & ~is_own & has_own_key_behind, _BROKEN)
        .when(has_key & ~is_own, _OTHER_GROUP)
        .when(F.col("line").isNotNull(), _COMMIT)
        .when(F.col("document").rlike(_DELETED), _TOMBSTONE)
        .when(F.startswith(text, begin) | F.startswith(begin, text), _BROKEN)
        .when(F.col("document").rlike(_MEMBERSHIP), _MEMBER)
        .when(F.col("document").rlike(_PART) | _is_an_end(), _BROKEN)
        .otherwise(_OTHER_LINE)
    )
