"""Following a message over a chain: the contracts beside the one that was named, each asked for its own id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tieout.cli.engine import Engine, Progress
from tieout.contracts import Contract, load_contracts
from tieout.contracts.chains import hops_before, whole_way
from tieout.contracts.loading import predecessor_of
from tieout.contracts.times import parse_time
from tieout.model import Identity, Window
from tieout.reporting.chain_trace import HopTrace
from tieout.reporting.trace import Asked, AskedBy


@dataclass(frozen=True)
class Chain:
    """The hops of a chain in their order, the contracts that are known of them, and which of them was named."""

    way: tuple[str, ...]
    contracts: Mapping[str, Contract]
    named: Contract

    @property
    def predecessors(self) -> dict[str, str | None]:
        """The hop before each hop."""
        return {name: predecessor_of(one) for name, one in self.contracts.items()}


def chain_beside(contract: Contract, file: Path) -> Chain | None:
    """Return the chain that the contracts of a contract's folder make with it, None where it is no hop of one.

    Other files of the folder that hold no contract are no hops.
    """
    beside, _ = load_contracts(file.absolute().parent)
    contracts = {one.pipeline: one for one in beside} | {contract.pipeline: contract}
    way = whole_way(contract.pipeline, {name: predecessor_of(one) for name, one in contracts.items()})
    return Chain(way, contracts, contract) if len(way) > 1 else None


def follow_chain(
    chain: Chain, window: Window | None, asked: Asked, engine: Engine, progress: Progress
) -> list[HopTrace]:
    """Return the trace of a message at each hop, in the order of the chain; the named contract is asked first.

    The other hops are asked for the message's id there, in the window given, or where the message belongs to a later or
    earlier one, in the window of the same length that holds its first attempt.
    """
    named = chain.named.pipeline
    progress(f"hop {named}")
    own = engine.follow(chain.named, window, asked, progress)
    found = {named: HopTrace(named, predecessor_of(chain.named), own)}
    ids = _ids(chain, _id_of(asked, own))
    for name in chain.way:
        if name != named:
            there = _asked_there(chain, name, asked, ids)
            if isinstance(there, str):
                found[name] = HopTrace(name, chain.predecessors.get(name), None, there)
                continue
            progress(f"hop {name}")
            trace = _traced(chain.contracts[name], window, there, engine, progress)
            found[name] = HopTrace(name, chain.predecessors[name], trace)
    return [found[name] for name in chain.way]


def _traced(
    contract: Contract, window: Window | None, asked: Asked, engine: Engine, progress: Progress
) -> Mapping[str, Any]:
    """Return the trace at another hop than the named one, in the window that holds the message's first attempt there.

    Nothing is judged where that hop's windows are ranges of offsets, or the window given is: those are its own.
    """
    given = window if contract.windows == "time" and (window is None or not window.offsets) else None
    trace = engine.follow(contract, given, asked, progress)
    moved = None if given is None else _window_of(trace, given)
    return trace if moved is None else engine.follow(contract, moved, asked, progress)


def _id_of(asked: Asked, own: Mapping[str, Any]) -> str | None:
    """Return the id of the message that was asked for, None where it has none, or several were found."""
    if asked.by is AskedBy.MESSAGE_ID:
        return asked.value
    names = {one["message_id"] for one in own["messages"]}
    return next(iter(names)) if len(names) == 1 else None


def _ids(chain: Chain, message_id: str | None) -> dict[str, str | None]:
    """Return the message's id at each hop before the named one, and at those after it up to where ids change."""
    named, predecessors = chain.named.pipeline, chain.predecessors
    ids = {named: message_id}
    here = chain.named
    for name in hops_before(named, predecessors):
        last = ids[here.pipeline]
        ids[name] = None if last is None or here.after is None else here.after.id_there(last)
        if name not in chain.contracts:
            break
        here = chain.contracts[name]
    for name in chain.way:
        after = chain.contracts[name].after if name in chain.contracts else None
        if name not in ids and after is not None:
            ids[name] = ids.get(after.pipeline) if after.id is None else None
    return ids


def _asked_there(chain: Chain, name: str, asked: Asked, ids: Mapping[str, str | None]) -> Asked | str:
    """Return what a hop is asked for, or why it is not asked."""
    contract = chain.contracts.get(name)
    if contract is None:
        return f"no contract beside {chain.named.pipeline}'s has the pipeline {name}"
    if asked.by is AskedBy.KEY:
        return asked
    if contract.identity is not Identity.MESSAGE_ID:
        return f"it identifies messages by {contract.identity}"
    there = ids.get(name)
    if there is None:
        return f"which id the message has here is not known; ask {name} for it"
    return replace(asked, by=AskedBy.MESSAGE_ID, value=there, position=None)


def _window_of(trace: Mapping[str, Any], given: Window) -> Window | None:
    """Return the window of the same length that holds a message's first attempt, None where the given one does."""
    judged = [one["judgement"] for one in trace["messages"]]
    times = [one["first_attempt_at"] for one in judged if one is not None and not one["is_judged_here"]]
    moment: datetime | None = next((parse_time(time) for time in times if time is not None), None)
    if moment is None:
        return None
    length = given.end - given.start
    steps = (moment - given.start) // length
    return None if steps == 0 else Window(given.start + steps * length, given.end + steps * length)
