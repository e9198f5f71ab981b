"""Where a message broke over a chain: said of the first hop that lost or broke it, with what cannot be told."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

from tieout.reporting.chain_trace import HopTrace, chain_document, render_chain
from tieout.reporting.schema import trace_schema
from tieout.reporting.trace import RequestedBy, TraceRequest

REQUEST = TraceRequest(RequestedBy.MESSAGE_ID, "m-1")
CHAINS = jsonschema.Draft202012Validator(
    {"$ref": "urn:trace#/$defs/chain"},
    registry=Registry().with_resource("urn:trace", Resource.from_contents(trace_schema())),
)
AFTER = {"enrich": None, "route": "enrich", "table": "route", "files": "route"}


def _hop(pipeline: str, disposition: str | None, class_name: str = "LOST", *also: str) -> HopTrace:
    """Return a hop whose message ended so: `elsewhere` is another window's, `nowhere` in no ledger, None not asked.

    It is of one class, and has breaks of this and `also` of others.
    """
    if disposition is None:
        return HopTrace(pipeline, AFTER[pipeline], None, "it identifies messages by content")
    is_here = disposition != "elsewhere"
    breaks: list[dict[str, Any]] = [
        {
            "break_id": "b", "incident_id": "i", "class": name, "flags": [], "locus": "sink", "cause": "unknown",
            "admissible": [], "rule": None, "severity": "critical",
        }
        for name in (class_name, *also)
        if name not in ("DELIVERED", "LOST")
    ]  # fmt: skip
    judgement = {
        "is_judged_here": is_here, "class": class_name if is_here else None, "flags": [],
        "disposition": disposition if is_here else None,
        "acceptance": "accepted", "locus": None, "is_due": True, "deadline": None, "first_attempt_at": None,
        "breaks": breaks, "words": f"disposition {disposition}",
    }  # fmt: skip
    message = {"message_id": "m-1", "positions": [], "journey": [], "judgement": judgement}
    found: dict[str, Any] = {
        "schema_version": 1, "pipeline": pipeline, "group": "g", "guarantee": "exactly_once", "identity": "message_id",
        "contract_digest": "d", "window": None, "asked": {"by": "message_id", "value": "m-1"}, "coverage": None,
        "messages_total": 1, "messages": [] if disposition == "nowhere" else [message],
    }  # fmt: skip
    return HopTrace(pipeline, AFTER[pipeline], found)


@pytest.mark.parametrize(
    ("ends", "lost_at", "words"),
    [
        (
            ("lost", "lost", "lost"),
            ["enrich"],
            "lost at enrich; route and table have the same loss",
        ),
        (("lost", "delivered", "lost"), ["enrich"], "lost at enrich; table has the same loss"),
        (("delivered", "delivered", "lost"), ["table"], "lost at table"),
        (
            ("delivered", "elsewhere", "lost"),
            ["table"],
            "lost at table; could not tell whether route lost it: not judged",
        ),
        (
            (None, "nowhere", "lost"),
            ["table"],
            "lost at table; could not tell whether enrich lost it: not asked; "
            "could not tell whether route lost it: in no ledger",
        ),
        (("lost", "nowhere", "nowhere"), ["enrich"], "lost at enrich"),
        (
            ("delivered", "in_flight", "nowhere"),
            [],
            "not lost at enrich and route; could not tell whether table lost it: in no ledger",
        ),
        (("nowhere", "nowhere", "nowhere"), [], None),
    ],
)
def test_a_loss_is_reported_at_the_first_hop_that_lost_it(
    ends: tuple[str | None, ...], lost_at: list[str], words: str | None
) -> None:
    """Hops before it that say nothing of the message leave the question open; those after it do not."""
    hops = [_hop(name, end) for name, end in zip(("enrich", "route", "table"), ends, strict=True)]

    document = chain_document(REQUEST, hops)

    CHAINS.validate(document)
    assert document["lost_at"] == lost_at
    if words is not None:
        assert document["words"] == words
    text = render_chain(document)
    assert text.startswith("hop 1 of 3: enrich\n")
    assert "\nhop 2 of 3: route, after enrich\n" in text
    assert text.endswith(f"chain: {document['words']}\n")


def test_where_a_chain_parts_each_branch_may_lose_it() -> None:
    """Neither is a consequence of the other."""
    ends = {"enrich": "delivered", "route": "delivered", "files": "lost", "table": "lost"}

    document = chain_document(REQUEST, [_hop(name, end) for name, end in ends.items()])

    assert document["lost_at"] == ["files", "table"]
    assert document["words"] == "lost at files and table"


def test_what_is_no_loss_is_reported_at_the_first_hop_that_shows_it() -> None:
    """A later hop may have carried it on: the incidents say whether it did. Breaks of commits are not the message's."""
    hops = [
        _hop("enrich", "delivered", "DELIVERED", "COMMIT_AHEAD"),
        _hop("route", "delivered", "OUTPUT_DUPLICATE"),
        _hop("table", "delivered", "OUTPUT_DUPLICATE"),
    ]

    document = chain_document(REQUEST, hops)

    CHAINS.validate(document)
    assert (
        document["words"]
        == "not lost at enrich, route and table; OUTPUT_DUPLICATE first at route, then at table"
    )


def test_a_message_may_be_broken_before_it_is_lost() -> None:
    """Each is told at its own hop."""
    document = chain_document(
        REQUEST, [_hop("enrich", "delivered", "CORRUPTED_VALUE"), _hop("route", "lost", "LOST")]
    )

    assert document["words"] == "lost at route; CORRUPTED_VALUE first at enrich"
