"""The example of a chain: three statements have the loss, and it is one incident, told at the hop where it happened."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from tests.store.examples import query, store_named

from tieout.cli.chain_tracing import chain_of_folder, follow_chain
from tieout.cli.engine import Engine
from tieout.contracts import Contract, load_contract, load_contracts
from tieout.contracts.times import parse_time
from tieout.engine.reconciling import reconcile
from tieout.engine.staging import break_lines
from tieout.engine.tracing import trace
from tieout.model import Window
from tieout.orchestration.incident_alerting import enqueue_incident_alerts
from tieout.reporting.chain_trace import chain_document
from tieout.reporting.trace import RequestedBy, TraceRequest, position_of
from tieout.store import RunOrigin, Store

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "chains" / "three_hops"
TRUTH: dict[str, Any] = json.loads((EXAMPLE / "truth.json").read_text())
WINDOW = Window(parse_time(TRUTH["window"]["start"]), parse_time(TRUTH["window"]["end"]))


@pytest.fixture(scope="module")
def judged(spark: SparkSession, postgres_url: str) -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
    """The URL of a store in which each hop's run is, and by pipeline its statement with the ids it lost."""
    reported = {}
    with store_named(postgres_url, "chain_example") as url:
        for hop in TRUTH["hops"]:
            contract = load_contract(EXAMPLE / f"{hop['pipeline']}.yml")
            found = reconcile(spark, contract, WINDOW, run_id=str(uuid.uuid4()), now=datetime.now(UTC))
            breaks = list(break_lines(found.breaks))
            Store(url).publish(found.statement, breaks, json.loads(contract.to_json()), RunOrigin())
            lost = [one["message_id"] for one in breaks if one["class"] == "LOST"]
            reported[contract.pipeline] = {"statement": found.statement, "lost": lost}
        yield url, reported


def test_the_contracts_are_a_chain() -> None:
    """In the order of the truth."""
    contracts, errors = load_contracts(EXAMPLE)

    assert errors == ()
    assert [one.pipeline for one in contracts] == [hop["pipeline"] for hop in TRUTH["hops"]]
    assert [one.after and one.after.pipeline for one in contracts] == [None, "orders_enrich", "orders_route"]


def test_each_hop_is_judged_by_itself(judged: tuple[str, dict[str, dict[str, Any]]]) -> None:
    """A verdict does not change because of another hop's; the statement names the hop before."""
    _, reported = judged

    for hop in TRUTH["hops"]:
        found = reported[hop["pipeline"]]
        assert (found["statement"]["verdict"], found["lost"]) == (hop["verdict"], hop["lost"])
        assert len(found["statement"]["incidents"]) == 1
    assert reported["orders_enrich"]["statement"]["limits"] == []
    assert reported["orders_to_table"]["statement"]["limits"] == [
        "one hop of a chain, after orders_route: a message that was lost there is lost here as well where produced has "
        "it. The pages and `tieout trace` tell where a message was lost"
    ]
    befores = {name: one["statement"].get("after") for name, one in reported.items()}
    assert befores == {
        "orders_enrich": None,
        "orders_route": "orders_enrich",
        "orders_to_table": "orders_route",
    }


def test_the_loss_is_one_incident(judged: tuple[str, dict[str, dict[str, Any]]]) -> None:
    """Counted, shown and told at the first hop, whose consequence the others are."""
    url, reported = judged
    store = Store(url)
    enqueue_incident_alerts(store)

    alerts = query(url, "SELECT pipeline FROM tieout.alert")
    own = {one.pipeline: one.open_incidents - one.happened_before for one in store.pipeline_summaries()}
    assert [row["pipeline"] for row in alerts] == TRUTH["told"]
    assert own == {hop["pipeline"]: len(hop["lost_here"]) for hop in TRUTH["hops"]}
    for pipeline in ("orders_route", "orders_to_table"):
        (origin,) = store.origins(pipeline, [reported[pipeline]["statement"]["run_id"]]).values()
        assert origin.words == "lost before, at orders_enrich"


class _Sparks:
    """Follows messages in the session of the tests; what was asked before is not followed again."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._traces: dict[tuple[str, Window | None, TraceRequest], dict[str, Any]] = {}

    def follow(
        self,
        contract: Contract,
        window: Window | None,
        request: TraceRequest,
        progress: Callable[[str], None],
    ) -> dict[str, Any]:
        """Return the trace of what is asked for."""
        key = (contract.to_json(), window, request)
        if key not in self._traces:
            self._traces[key] = trace(
                self._spark, contract, window, request, now=datetime.now(UTC), progress=progress
            )
        return copy.deepcopy(self._traces[key])


@pytest.fixture(scope="module")
def sparks(spark: SparkSession) -> Engine:
    """What follows messages for all tests here: from whichever hop one asks, the other hops are asked the same."""
    return cast("Engine", _Sparks(spark))


@pytest.mark.parametrize("hop", [one["pipeline"] for one in TRUTH["hops"]])
@pytest.mark.parametrize("by", [RequestedBy.MESSAGE_ID, RequestedBy.POSITION])
def test_the_trace_tells_where_it_was_lost(sparks: Engine, hop: str, by: RequestedBy) -> None:
    """From any hop, by the id or by the position at which the message was sent."""
    file = EXAMPLE / f"{hop}.yml"
    chain = chain_of_folder(load_contract(file), file)
    assert chain is not None
    requested = TraceRequest(by, "order-0023")
    if by is RequestedBy.POSITION:
        requested = TraceRequest(by, TRUTH["position"], position_of(TRUTH["position"]))

    document = chain_document(requested, follow_chain(chain, WINDOW, requested, sparks, lambda _step: None))

    assert document["words"] == ("lost at orders_enrich; orders_route and orders_to_table have the same loss")
    assert [one["state"] for one in document["hops"]] == ["lost"] * 3
