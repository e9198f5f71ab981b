"""Traces a message over a chain: the named contract and the other contracts of its folder, each by its own id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tieout.cli.engine import Engine, Progress
from tieout.contracts import Contract, load_contracts
from tieout.contracts.chains import hops_before, whole_chain
from tieout.contracts.loading import predecessor_of
from tieout.contracts.times import parse_time
from tieout.model import Identity, Window
from tieout.reporting.chain_trace import HopTrace
from tieout.reporting.trace import RequestedBy, TraceRequest


@dataclass(frozen=True)
class Chain:
    """The hops of a chain in order, the contracts found for them, and the contract named on the command line."""

    hops: tuple[str, ...]
    contracts: Mapping[str, Contract]
    named: Contract

    @property
    def predecessors(self) -> dict[str, str | None]:
        """The hop before each hop."""
        return {name: predecessor_of(contract) for name, contract in self.contracts.items()}


def chain_of_folder(contract: Contract, file: Path) -> Chain | None:
    """Return the chain that a contract forms with the contracts of its folder, None if it has no other hop.

    Files of the folder that are not contracts are ignored.
    """
    in_folder, _ = load_contracts(file.absolute().parent)
    contracts = {found.pipeline: found for found in in_folder} | {contract.pipeline: contract}
    hops = whole_chain(contract.pipeline, {name: predecessor_of(found) for name, found in contracts.items()})
    return Chain(hops, contracts, contract) if len(hops) > 1 else None


def follow_chain(
    chain: Chain, window: Window | None, request: TraceRequest, engine: Engine, progress: Progress
) -> list[HopTrace]:
    """Return the trace of a message at each hop, in the order of the chain; the named contract is traced first.

    The other hops are traced by the message's id there, in the given window. If the message's first attempt there is
    outside it, they are traced in the window of the same length that holds that attempt.
    """
    named = chain.named.pipeline
    progress(f"hop {named}")
    named_trace = engine.follow(chain.named, window, request, progress)
    traces = {named: HopTrace(named, predecessor_of(chain.named), named_trace)}
    ids = _ids(chain, _id_of(request, named_trace))
    for name in chain.hops:
        if name != named:
            request_there = _request_at(chain, name, request, ids)
            if isinstance(request_there, str):
                traces[name] = HopTrace(name, chain.predecessors.get(name), None, request_there)
                continue
            progress(f"hop {name}")
            trace = _traced(chain.contracts[name], window, request_there, engine, progress)
            traces[name] = HopTrace(name, chain.predecessors[name], trace)
    return [traces[name] for name in chain.hops]


def _traced(
    contract: Contract, window: Window | None, request: TraceRequest, engine: Engine, progress: Progress
) -> Mapping[str, Any]:
    """Return the trace at a hop other than the named one, in the window that holds the message's first attempt there.

    Nothing is judged if that hop or the given window uses ranges of offsets: offsets differ between hops.
    """
    time_window = window if contract.windows == "time" and (window is None or not window.offsets) else None
    trace = engine.follow(contract, time_window, request, progress)
    moved = None if time_window is None else _window_of(trace, time_window)
    return trace if moved is None else engine.follow(contract, moved, request, progress)


def _id_of(request: TraceRequest, named_trace: Mapping[str, Any]) -> str | None:
    """Return the id of the requested message, None if it has none or several messages were found."""
    if request.by is RequestedBy.MESSAGE_ID:
        return request.value
    ids = {message["message_id"] for message in named_trace["messages"]}
    return next(iter(ids)) if len(ids) == 1 else None


def _ids(chain: Chain, message_id: str | None) -> dict[str, str | None]:
    """Return the message's id at each earlier hop, and at each later hop until the id changes."""
    named, predecessors = chain.named.pipeline, chain.predecessors
    ids = {named: message_id}
    hop = chain.named
    for name in hops_before(named, predecessors):
        last = ids[hop.pipeline]
        ids[name] = None if last is None or hop.after is None else hop.after.id_at_predecessor(last)
        if name not in chain.contracts:
            break
        hop = chain.contracts[name]
    for name in chain.hops:
        after = chain.contracts[name].after if name in chain.contracts else None
        if name not in ids and after is not None:
            ids[name] = ids.get(after.pipeline) if after.id is None else None
    return ids


def _request_at(
    chain: Chain, name: str, request: TraceRequest, ids: Mapping[str, str | None]
) -> TraceRequest | str:
    """Return the trace request for a hop, or the reason why it is not traced."""
    contract = chain.contracts.get(name)
    if contract is None:
        return f"no contract beside {chain.named.pipeline}'s has the pipeline {name}"
    if request.by is RequestedBy.KEY:
        return request
    if contract.identity is not Identity.MESSAGE_ID:
        return f"it identifies messages by {contract.identity}"
    message_id = ids.get(name)
    if message_id is None:
        return f"which id the message has here is not known; ask {name} for it"
    return replace(request, by=RequestedBy.MESSAGE_ID, value=message_id, position=None)


def _window_of(trace: Mapping[str, Any], window: Window) -> Window | None:
    """Return the window of the same length that holds a message's first attempt, None if the given one holds it."""
    judged = [message["judgement"] for message in trace["messages"]]
    times = [
        judgement["first_attempt_at"]
        for judgement in judged
        if judgement is not None and not judgement["is_judged_here"]
    ]
    moment: datetime | None = next((parse_time(time) for time in times if time is not None), None)
    if moment is None:
        return None
    length = window.end - window.start
    steps = (moment - window.start) // length
    return None if steps == 0 else Window(window.start + steps * length, window.end + steps * length)
