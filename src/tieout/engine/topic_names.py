"""One name for each Pulsar topic: clients write `persistent://public/default/orders`, people write `orders`.

Also `…-partition-3`, which is how clients name a partition of a topic. Rows of all ledgers get the name that the
contract's own source has, so that a position is the same one whoever wrote it down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.contracts import Contract, PulsarCursorSource, PulsarSource
from tieout.engine.reading_order import in_reading_order
from tieout.engine.sources.conforming import Conformed
from tieout.model import Ledger

_PARTITION: Final = "-partition-"


def other_names(contract: Contract) -> dict[str, str]:
    """Return the name in the contract for each other spelling of a Pulsar topic; the log's own name comes first."""
    ledgers = [Ledger.LOG, *in_reading_order(contract.ledgers)]
    sources = [contract.ledgers[ledger].source for ledger in ledgers if ledger in contract.ledgers]
    names: dict[str, str] = {}
    for source in sources:
        if isinstance(source, (PulsarSource, PulsarCursorSource)):
            name = names.get(source.topic, source.topic)
            for spelling in source.spellings:
                names.setdefault(spelling, name)
    return {spelling: name for spelling, name in names.items() if spelling != name}


def with_names(found: Conformed, names: Mapping[str, str]) -> Conformed:
    """Return the rows with the contract's name of each topic, given `other_names`.

    | topic                                         | partition | becomes |
    |-----------------------------------------------|-----------|---------|
    | `persistent://public/default/orders`          | 0         | orders  |
    | `public/default/orders-partition-3`           | 3         | orders  |
    """
    if not names or not {"topic", "partition"} <= set(found.rows.columns) or "topic" not in found.present:
        return found
    return replace(found, rows=_named(found.rows, names))


def _named(rows: DataFrame, names: Mapping[str, str]) -> DataFrame:
    topic = F.col("topic")
    own = F.regexp_replace(topic, F.concat(F.lit(_PARTITION), F.col("partition"), F.lit("$")), F.lit(""))
    known = {name: name for name in names.values()} | dict(names)
    found = F.coalesce(_found(topic, known), _found(own, known), topic)
    return rows.withColumn("topic", found)


def _found(topic: Column, names: Mapping[str, str]) -> Column:
    pairs = [F.lit(text) for pair in names.items() for text in pair]
    return F.create_map(*pairs)[topic]
