"""A message over a chain of contracts: its trace at each hop, and the hop at which it was lost, doubled or changed.

Pure: from the traces of the hops to one document. Docs: docs/reference/trace.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tieout.contracts.chains import hops_before
from tieout.model import BreakClass
from tieout.reporting.alerts import printable
from tieout.reporting.trace import LINE_LIMIT, TRACE_VERSION, TraceRequest, render_trace


class HopState(StrEnum):
    """The state of the message at a hop."""

    LOST = "lost"
    NOT_LOST = "not lost"
    NOT_JUDGED = "not judged"
    NOT_FOUND = "in no ledger"
    NOT_QUERIED = "not asked"


@dataclass(frozen=True)
class HopTrace:
    """A hop's trace; or, in `note`, why it has none."""

    pipeline: str
    after: str | None
    trace: Mapping[str, Any] | None
    note: str | None = None

    @property
    def state(self) -> HopState:
        """Lost if one of its messages is lost; not lost only if each was judged."""
        if self.trace is None:
            return HopState.NOT_QUERIED
        if not self.trace["messages"]:
            return HopState.NOT_FOUND
        judged = [message["judgement"] for message in self.trace["messages"]]
        if any(judgement is not None and judgement["disposition"] == "lost" for judgement in judged):
            return HopState.LOST
        is_whole = all(judgement is not None and judgement["is_judged_here"] for judgement in judged)
        return HopState.NOT_LOST if is_whole else HopState.NOT_JUDGED

    @property
    def classes(self) -> frozenset[str]:
        """The break classes of its messages, except LOST."""
        messages = [] if self.trace is None else self.trace["messages"]
        judged = [message["judgement"] for message in messages if message["judgement"] is not None]
        broken = {
            judgement["class"]
            for judgement in judged
            if judgement["class"] in {found["class"] for found in judgement["breaks"]}
        }
        return frozenset(broken - {BreakClass.LOST.value})


def chain_document(request: TraceRequest, hops: Sequence[HopTrace]) -> dict[str, Any]:
    """Return the trace over a chain as `tieout trace --json` prints it.

    `lost_at` are the first hops that lost the message: several where a chain branches. A break of another class may be
    carried on or new at a hop: the first hop that shows it is named first.
    """
    before = {hop.pipeline: hop.after for hop in hops}
    states = {hop.pipeline: hop.state for hop in hops}
    lost = [hop.pipeline for hop in hops if hop.state is HopState.LOST]
    lost_at = _first(lost, before)
    classes = sorted({name for hop in hops for name in hop.classes})
    shown = [_shown(name, [hop.pipeline for hop in hops if name in hop.classes], before) for name in classes]
    return {
        "schema_version": TRACE_VERSION,
        "asked": {"by": request.by.value, "value": request.value},
        "hops": [
            {
                "pipeline": hop.pipeline,
                "after": hop.after,
                "state": hop.state.value,
                "note": hop.note,
                "trace": hop.trace,
            }
            for hop in hops
        ],
        "lost_at": lost_at,
        "words": "; ".join([*_words(lost, lost_at, before, states), *shown]),
    }


def _first(names: Sequence[str], before: Mapping[str, str | None]) -> list[str]:
    """Return the hops that come after none of the others."""
    return [name for name in names if not set(hops_before(name, before)) & set(names)]


def _shown(class_name: str, names: Sequence[str], before: Mapping[str, str | None]) -> str:
    """Return the hops that have the message in a class, the first ones first."""
    first = _first(names, before)
    later = [name for name in names if name not in first]
    return f"{class_name} first at {_listed(first)}" + (f", then at {_listed(later)}" if later else "")


def _words(
    lost: Sequence[str],
    lost_at: Sequence[str],
    before: Mapping[str, str | None],
    states: Mapping[str, HopState],
) -> list[str]:
    """Return where the message was lost, and for which hops that is unknown."""
    relevant = set(states) if not lost else {name for hop in lost_at for name in hops_before(hop, before)}
    open_ = [
        name for name in states if name in relevant and states[name] not in (HopState.LOST, HopState.NOT_LOST)
    ]
    doubts = [f"could not tell whether {name} lost it: {states[name]}" for name in open_]
    later = [name for name in lost if name not in lost_at]
    if not lost:
        judged = [name for name, state in states.items() if state is HopState.NOT_LOST]
        kept = [f"not lost at {_listed(judged)}"] if judged else []
        return [*kept, *doubts]
    same = [f"{_listed(later)} {'have' if len(later) > 1 else 'has'} the same loss"] if later else []
    return [f"lost at {_listed(lost_at)}", *same, *doubts]


def _listed(names: Sequence[str]) -> str:
    """Return names as a list in words.

    >>> _listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def render_chain(document: Mapping[str, Any]) -> str:
    """Return a trace over a chain as lines of text, hop by hop, and at the end the hop where it broke."""
    sections = []
    hops = document["hops"]
    for number, hop in enumerate(hops, start=1):
        after = f", after {hop['after']}" if hop["after"] else ""
        head = printable(f"hop {number} of {len(hops)}: {hop['pipeline']}{after}", LINE_LIMIT)
        body = (
            printable(f"  {hop['note']}", LINE_LIMIT) + "\n"
            if hop["trace"] is None
            else render_trace(hop["trace"])
        )
        sections.append(f"{head}\n{body}")
    return "\n".join(sections) + "\n" + printable(f"chain: {document['words']}", LINE_LIMIT) + "\n"
