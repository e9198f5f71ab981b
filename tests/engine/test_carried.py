"""What a hop doubled, corrupted or invented, and later hops only carried on, is one incident; nothing else is."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.chains import WINDOW, Hop, histories_of, judged, origins, statement_of, write_evidence
from tests.store.examples import query, store_named

from tieout.engine.reconciling import reconcile
from tieout.engine.staging import break_lines
from tieout.orchestration.incident_alerting import enqueue_incident_alerts
from tieout.store import Store

A, M, Z = ("a", "A"), ("m", "M"), ("z", "Z")
OTHER, THIRD = ("m", "other"), ("m", "third")
CLEAN = (A, M, Z)
TWICE, THRICE = (A, M, M, Z), (A, M, M, M, Z)
SPOILT = (A, OTHER, Z)
INVENTED = (A, M, Z, ("x", "X"))
NOT_SHOWN = (
    "could not tell whether {before} {what} them: "
    "the evidence of hop{here} does not show that it only carried them on"
)
OTHERWISE = "could not tell whether {before} {what} them: {before} has others, or the same otherwise"

_CARRIED: list[tuple[str, list[Hop], str, str]] = [
    ("doubled", [Hop(TWICE), Hop(TWICE, of_topic=True)], "OUTPUT_DUPLICATE", "duplicated before, at hop1"),
    ("removed again", [Hop(TWICE), Hop(CLEAN, of_topic=True)], "LOG_DUPLICATE", "duplicated before, at hop1"),
    (
        "doubled, with the offsets it came from",
        [Hop(TWICE), Hop(TWICE, takes=(0, 1, 2, 3))],
        "OUTPUT_DUPLICATE",
        "duplicated before, at hop1",
    ),
    ("corrupted", [Hop(SPOILT), Hop(SPOILT)], "CORRUPTED_VALUE", "corrupted before, at hop1"),
    (
        "corrupted and doubled",
        [Hop((A, OTHER, OTHER, Z)), Hop((A, OTHER, OTHER, Z), takes=(0, 1, 2, 3))],
        "CORRUPTED_VALUE",
        "corrupted before, at hop1",
    ),
    ("invented", [Hop(INVENTED), Hop(INVENTED)], "PHANTOM_UNKNOWN", "invented before, at hop1"),
    (
        "over three hops",
        [Hop(SPOILT), Hop(SPOILT), Hop(SPOILT)],
        "CORRUPTED_VALUE",
        "corrupted before, at hop1",
    ),
]

_APART: list[tuple[str, list[Hop], str, str]] = [
    (
        "doubled here",
        [Hop(CLEAN), Hop(TWICE, of_topic=True)],
        "OUTPUT_DUPLICATE",
        "duplicated here, not at hop1",
    ),
    (
        "doubled again",
        [Hop(TWICE), Hop(THRICE, of_topic=True)],
        "OUTPUT_DUPLICATE",
        NOT_SHOWN.format(before="hop1", what="duplicated", here=2),
    ),
    (
        "without a position nobody knows which copy an effect is of",
        [Hop(TWICE), Hop(TWICE)],
        "OUTPUT_DUPLICATE",
        NOT_SHOWN.format(before="hop1", what="duplicated", here=2),
    ),
    (
        "one copy twice, the other never",
        [Hop(TWICE), Hop(TWICE, takes=(0, 1, 1, 3))],
        "OUTPUT_DUPLICATE",
        NOT_SHOWN.format(before="hop1", what="duplicated", here=2),
    ),
    ("corrupted here", [Hop(CLEAN), Hop(SPOILT)], "CORRUPTED_VALUE", "corrupted here, not at hop1"),
    (
        "corrupted again",
        [Hop(SPOILT), Hop((A, THIRD, Z))],
        "CORRUPTED_VALUE",
        OTHERWISE.format(before="hop1", what="corrupted"),
    ),
    (
        "corrupted there, doubled here",
        [Hop(SPOILT), Hop((A, OTHER, OTHER, Z))],
        "CORRUPTED_VALUE",
        NOT_SHOWN.format(before="hop1", what="corrupted", here=2),
    ),
    ("invented here", [Hop(CLEAN), Hop(INVENTED)], "PHANTOM_UNKNOWN", "invented here, not at hop1"),
    (
        "invented with another content",
        [Hop(INVENTED), Hop((*CLEAN, ("x", "Y")))],
        "PHANTOM_UNKNOWN",
        OTHERWISE.format(before="hop1", what="invented"),
    ),
    (
        "a hop in between that had it right",
        [Hop(SPOILT), Hop(CLEAN), Hop(SPOILT)],
        "CORRUPTED_VALUE",
        "corrupted here, not at hop2",
    ),
]


@pytest.mark.parametrize(
    ("hops", "name", "words"), [one[1:] for one in _CARRIED], ids=[one[0] for one in _CARRIED]
)
def test_what_is_carried_on_is_one_incident(
    postgres_url: str, hops: list[Hop], name: str, words: str
) -> None:
    """Each hop's statement has it, and alerts tell of it once."""
    with store_named(postgres_url, "carried") as url:
        store = Store(url)
        reported = judged(store, hops)
        enqueue_incident_alerts(store)

        for statement in reported[1:]:
            origin = origins(store, statement)[name]
            assert (origin.words, origin.is_consequence) == (words, True)
            assert [one.pipeline for one in origin.earlier] == ["hop1"]
        assert {row["pipeline"] for row in query(url, "SELECT pipeline FROM tieout.alert")} == {"hop1"}
        happened = {one.pipeline: one.happened_before for one in store.pipeline_summaries()}
        assert happened == {statement["pipeline"]: int(place > 0) for place, statement in enumerate(reported)}


@pytest.mark.parametrize(
    ("hops", "name", "words"), [one[1:] for one in _APART], ids=[one[0] for one in _APART]
)
def test_what_is_not_shown_to_be_carried_on_stays_apart(
    postgres_url: str, hops: list[Hop], name: str, words: str
) -> None:
    """It is told at the later hop as well, with the reason."""
    with store_named(postgres_url, "apart") as url:
        store = Store(url)
        statement = judged(store, hops)[-1]
        enqueue_incident_alerts(store)

        origin = origins(store, statement)[name]
        assert (origin.words, origin.is_consequence) == (words, False)
        rows = query(url, "SELECT pipeline, payload FROM tieout.alert ORDER BY alert_id")
        reported = [row for row in rows if row["pipeline"] == statement["pipeline"]]
        assert len(reported) == 1
        assert f"Chain: {words}" in reported[0]["payload"]["text"]


def test_what_is_said_of_a_hop_is_what_a_run_says_of_its_files(spark: SparkSession, tmp_path: Path) -> None:
    """Statement and breaks, all but how each ledger was read; so the other tests need no Spark."""
    last = Hop((A, OTHER, OTHER, Z, ("x", "X")), takes=(0, 1, 2, 3, 4))
    for history in histories_of([Hop(TWICE), Hop(TWICE, of_topic=True), last]):
        contract = write_evidence(history, tmp_path)
        found = reconcile(spark, contract, WINDOW, run_id="r", now=datetime.now(UTC))

        statement, breaks = statement_of(history)

        own = dict.fromkeys(("run_id", "generated_at", "coverage"))
        assert found.statement | own == statement | own
        assert [*break_lines(found.breaks)] == breaks != []
