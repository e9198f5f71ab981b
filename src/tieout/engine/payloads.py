"""Finds the payloads of lost messages in the source of the ledger that the contract's `replay` names.

The ledgers have hashes only. So the source is read once more, with the same `columns` and `where`. A row gives a
message's payload only if it has its identity and, if the evidence has one, its payload hash.
Docs: docs/how-to/replay-lost-messages.md.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, MapType, StringType

from tieout.contracts import Contract, Replay
from tieout.engine.reading import spec_of
from tieout.engine.sources import READERS
from tieout.engine.sources.casting import strict
from tieout.engine.sources.conforming import lenient
from tieout.engine.sources.expressions import NOT_ANALYSED, exact, numbers_in, reason_of, require_plain
from tieout.engine.sources.named_columns import paths_in, text_columns
from tieout.engine.sources.source import FAULT, HIDDEN, Request
from tieout.errors import SourceError
from tieout.model import Identity
from tieout.replaying import UNREADABLE, Body, LostMessage

_LOST: Final = "lost_key string, lost_id string, lost_session string, lost_topic string, \
lost_partition int, lost_offset bigint, lost_hash string"

_DIGESTS: Final = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")

_HEADERS: Final = "array<struct<key: string, value: string>>"
_LOG_HEADERS: Final = "array<struct<key:string,value:binary>>"


def payloads_of(
    spark: SparkSession, contract: Contract, lost: Sequence[LostMessage], now: datetime
) -> Iterator[tuple[str, Body]]:
    """Yield the idempotence key and the body of each lost message that the source has.

    Raises:
        SourceError: where the source cannot be read, or an expression of the contract's `replay` is none over it.
        ConnectionNotFoundError: where the source's connection is not defined.
    """
    replay = contract.replay
    if replay is None or replay.value is None or not lost:
        return
    with lenient(spark):
        candidates, is_computed = _candidates(spark, contract, replay, now)
        found = _matched(spark, contract, candidates, lost)
    hashes = {one.key: one.payload_hash for one in lost}
    for row in found.toLocalIterator():
        body, claimed = _body(row), hashes[row["lost_key"]]
        is_verified = claimed is not None and (is_computed or has_digest(body.value, claimed))
        yield row["lost_key"], replace(body, is_verified=is_verified)


def is_computed_from(hash_text: str | None, replay: Replay, columns: Sequence[str]) -> bool:
    """Return whether the contract's expression of the payload hash is computed from the body, and from nothing else.

    A source column that holds a hash is not: whoever writes the row can claim any hash. Nor is an expression that also
    uses such a column.

    >>> replay, columns = Replay(value="doc.body", key="id"), ["doc", "id", "hash"]
    >>> is_computed_from("sha2(cast(doc.body as binary), 256)", replay, columns)
    True
    >>> [is_computed_from(text, replay, columns) for text in ("doc.hash", "coalesce(hash, sha2(doc.body, 256))")]
    [False, False]
    """
    if hash_text is None or replay.value is None:
        return False
    hashed, value = paths_in(hash_text, columns), paths_in(replay.value, columns)
    carried = value.union(
        *(paths_in(text, columns) for text in (replay.key, replay.headers) if text is not None)
    )
    return bool(value) and value <= hashed <= carried


def has_digest(value: bytes | None, claimed: str) -> bool:
    """Return whether `claimed` is a usual digest of the value, in hexadecimal or base64.

    >>> has_digest(b"one", hashlib.sha256(b"one").hexdigest().upper()), has_digest(b"one", "h1")
    (True, False)
    """
    if value is None:
        return False
    found = [hashlib.new(name, value, usedforsecurity=False).digest() for name in _DIGESTS]
    return any(claimed.lower() == one.hex() or claimed == base64.b64encode(one).decode() for one in found)


def _candidates(
    spark: SparkSession, contract: Contract, replay: Replay, now: datetime
) -> tuple[DataFrame, bool]:
    """Return the source's rows, with the columns to find them by (`id`, `session`, position, `hash`) and their bodies.

    The second value says whether the contract computes the hash from the body.
    """
    ledger = replay.from_
    spec = spec_of(contract, ledger)
    body_expressions = filter(None, [replay.key, replay.value, replay.headers])
    texts = text_columns(ledger, spec.columns)
    request = Request(
        spark, ledger, contract.base_dir, now, texts, expressions=(*spec.expressions, *body_expressions)
    )
    rows = READERS[spec.source.kind](spec.source, request).rows
    if rows is None:
        raise SourceError(
            f"{request.place}: there is nothing to take bodies from; are its files still there?"
        )
    rows = rows.where(F.col(FAULT).isNull())
    numbers = numbers_in(rows)
    require_plain(
        rows, spec.expressions_by_path(f"ledgers.{ledger}"), written=lambda text: exact(text, numbers)
    )
    if spec.where is not None:
        rows = rows.where(F.expr(exact(spec.where, numbers)))
    own = {name.lower(): name for name in rows.columns if name not in HIDDEN}

    def canonical(name: str, kind: str) -> Column:
        text = spec.columns.get(name) or (f"`{own[name]}`" if name in own else "null")
        value = F.expr(exact(text, numbers))
        return strict(value, rows.select(value).schema[0].dataType, StringType()).cast(kind)

    candidates = rows.select(
        canonical("message_id", "string").alias("id"),
        canonical("producer_session", "string").alias("session"),
        canonical("topic", "string").alias("topic"),
        canonical("partition", "int").alias("partition"),
        canonical("offset", "bigint").alias("offset"),
        canonical("payload_hash", "string").alias("hash"),
        _bytes(rows, "key", replay.key).alias("key"),
        _bytes(rows, "value", replay.value).alias("value"),
        _headers(rows, replay.headers).alias("headers"),
    )
    return candidates, is_computed_from(spec.columns.get("payload_hash"), replay, list(own.values()))


def _matched(
    spark: SparkSession, contract: Contract, candidates: DataFrame, lost: Sequence[LostMessage]
) -> DataFrame:
    """Return one row for each lost message that was found: `lost_key`, `bodies`: the different ones.

    | lost_key | bodies                              |
    |------------|-------------------------------------|
    | 3f2a…      | [{key: 6b, value: 7b7d, headers: …}] |
    """
    rows = [
        (one.key, one.message_id, one.session, one.topic, one.partition, one.offset, one.payload_hash)
        for one in lost
    ]
    lost_rows = F.broadcast(spark.createDataFrame(rows, _LOST))
    by_hash = F.col("lost_hash").isNull() | (F.col("hash") == F.col("lost_hash"))
    return (
        candidates.join(lost_rows, _is_same(contract) & by_hash, how="inner")
        .groupBy("lost_key")
        .agg(F.collect_set(F.struct("key", "value", "headers")).alias("bodies"))
        .select("lost_key", F.size("bodies").alias("versions"), F.col("bodies")[0].alias("body"))
    )


def _is_same(contract: Contract) -> Column:
    """Return whether a source row belongs to a lost message, by the contract's identity."""
    if contract.identity is Identity.CONTENT:
        return F.col("hash") == F.col("lost_hash")
    if contract.identity is Identity.POSITION:
        return (
            (F.col("topic") == F.col("lost_topic"))
            & (F.col("partition") == F.col("lost_partition"))
            & (F.col("offset") == F.col("lost_offset"))
        )
    in_session = F.col("lost_session").isNull() | (F.col("session") == F.col("lost_session"))
    return (F.col("id") == F.col("lost_id")) & in_session


def _body(row: Row) -> Body:
    body = row["body"]
    if body["headers"] is None:
        return Body(UNREADABLE)
    return Body(
        row["versions"],
        None if body["key"] is None else bytes(body["key"]),
        None if body["value"] is None else bytes(body["value"]),
        tuple((header["key"], header["value"]) for header in body["headers"]),
    )


def _bytes(rows: DataFrame, name: str, text: str | None) -> Column:
    """Return an expression of the contract as bytes.

    Raises:
        SourceError: where it is none, or gives neither text nor bytes.
    """
    if text is None:
        return F.lit(None).cast("binary")
    value = _expression(rows, name, text)
    kind = rows.select(value).schema[0].dataType
    if not isinstance(kind, StringType | BinaryType):
        raise SourceError(
            f"replay.{name}: expected text or bytes, found {kind.simpleString()}; use cast or to_json"
        )
    return value.cast("binary")


def _headers(rows: DataFrame, text: str | None) -> Column:
    """Return the contract's headers as an array of `{key, value}`, texts both; null where a value is no text.

    Those of a log keep their order and may repeat a key; those of a map are in the order of their keys.

    Raises:
        SourceError: where they are neither a map of text to text nor headers as a log has them.
    """
    if text is None:
        return F.expr("array()").cast(_HEADERS)
    value = _expression(rows, "headers", text)
    kind = rows.select(value).schema[0].dataType
    if isinstance(kind, MapType) and {kind.keyType, kind.valueType} == {StringType()}:
        return F.coalesce(F.array_sort(F.map_entries(value)), F.expr("array()")).cast(_HEADERS)
    if kind.simpleString() != _LOG_HEADERS:
        raise SourceError(
            f"replay.headers: expected a map of text to text, or {_LOG_HEADERS}, found {kind.simpleString()}"
        )
    is_text = F.forall(
        value, lambda one: F.coalesce(F.is_valid_utf8(one["value"].cast("string")), F.lit(True))
    )
    return F.when(is_text, value.cast(_HEADERS))


def _expression(rows: DataFrame, name: str, text: str) -> Column:
    # An object that is named alone stays one, and is no text: a hash is made of what it prints.
    numbers = {one: [path for path in paths if path[-1:] != "."] for one, paths in numbers_in(rows).items()}
    require_plain(rows, {f"replay.{name}": text}, written=lambda one: exact(one, numbers))
    try:
        value = F.expr(exact(text, numbers))
        rows.select(value)
    except NOT_ANALYSED as error:
        shown = ", ".join(sorted(set(rows.columns) - set(HIDDEN))[:40])
        raise SourceError(
            f"replay.{name}: {reason_of(error, text)}; the source's columns are: {shown}"
        ) from None
    return value
