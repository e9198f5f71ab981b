"""Signs that a contract does not fit the rows of a ledger, so that what they lack proves nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from tieout.contracts import Contract
from tieout.contracts.ledgers import ledgers_like_produced
from tieout.engine.counting import Counts
from tieout.engine.rows_not_judged import OtherGroups
from tieout.engine.scope import Scope
from tieout.engine.sources.named_columns import is_path, paths_in
from tieout.model import Ledger

_SHOWN_TEXT: Final = 80


def with_shared_inputs(scope: Scope) -> Scope:
    """Return the scope; a ledger of the consumer's side that has a file of the sends does not cover."""
    contract, sent = scope.contract, scope.evidence[Ledger.PRODUCED].coverage.digests
    evidence = dict(scope.evidence)
    for ledger in ledgers_like_produced(contract.ledgers):
        found = evidence[ledger]
        shared = sorted(line.partition("  ")[2] for line in set(sent) & set(found.coverage.digests))
        if shared:
            doubt = f"{shared[0]} is a file of produced as well, so that each send in it counts here"
            coverage = replace(found.coverage, doubts=(*found.coverage.doubts, doubt))
            evidence[ledger] = replace(found, coverage=coverage)
    return replace(scope, evidence=evidence)


def doubts_of(
    contract: Contract, ledger: Ledger, counts: Counts, others: OtherGroups, names: Sequence[str]
) -> Iterator[str]:
    """Yield a sentence for each sign; `names` are the columns of the source.

    All rows are of other groups, of which one has the judged group's name in other letters. Or an expression gives no
    send an outcome, and no log says what was written: then every send without an effect would count as not sent.
    """
    if others.alike and counts.of_others == counts.rows:
        yield f"no row is of the group, and {others.spelling}: write the name as the rows have it"
    text = contract.ledgers[ledger].columns.get("outcome", "")
    is_computed = bool(paths_in(text, names)) and not is_path(text)
    is_decided = ledger is not Ledger.PRODUCED or Ledger.LOG in contract.ledgers
    if is_computed and not is_decided and counts.rows and not counts.with_outcome:
        yield f"outcome is null in all rows: {text[:_SHOWN_TEXT]} does not seem to fit the values"
