"""The SQL variables of a run: the contract's terms, the window, and the coverage of each ledger.

They are variables of the connection, so that DuckDB folds every condition on them to a constant when it plans a
statement: a rule about a ledger that is not declared costs nothing. `rounds/macros/` has the conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tieout.engine.evidence import COARSEST_CLOCK, EARLIEST_PLAUSIBLE
from tieout.engine.scope import Scope
from tieout.model import Ledger

_COVERAGE: Final = (
    "STRUCT(is_present BOOLEAN, is_sound BOOLEAN, complete_until TIMESTAMP, names_all_producers BOOLEAN)"
)
_TYPES: Final[Mapping[str, str]] = {
    "window_start": "TIMESTAMP",
    "window_end": "TIMESTAMP",
    "horizon": "TIMESTAMP",
    "earliest_plausible": "TIMESTAMP",
    "allowed_latency": "INTERVAL",
    "clock_skew": "INTERVAL",
    "redelivery": "INTERVAL",
    "look_back": "INTERVAL",
    "coarsest_clock": "INTERVAL",
    "ranges": 'STRUCT(topic VARCHAR, "partition" INTEGER, "from" BIGINT, "to" BIGINT)[]',
    "coverage": f"MAP(VARCHAR, {_COVERAGE})",
    "columns": "VARCHAR[]",
    "unknown_contents": "VARCHAR[]",
    "empty_contents": "MAP(VARCHAR, VARCHAR)",
    "resets": 'STRUCT("at" TIMESTAMP, "group" VARCHAR)[]',
    "fan_out_count": "BIGINT",
    "latency_share": "BIGINT",
    "has_effect_keys": "BOOLEAN",
    "is_queue": "BOOLEAN",
    "requested_position": 'STRUCT(topic VARCHAR, "partition" INTEGER, "offset" BIGINT)',
    "requested_digests": "VARCHAR[]",
}
"""The type of each variable that is not a string."""


@dataclass(frozen=True)
class Terms:
    """The variables of a run, by name: plain values that can be sent to another process."""

    values: Mapping[str, Any]

    def statements(self) -> list[tuple[str, Any]]:
        """Return a statement with its parameter for each variable."""
        return [
            (f"SET VARIABLE {name} = CAST(? AS {type_of(name)})", value)
            for name, value in self.values.items()
        ]


def type_of(name: str) -> str:
    """Return the type of a variable in DuckDB."""
    return "TIMESTAMP" if name.startswith(("covered_", "accounted_")) else _TYPES.get(name, "VARCHAR")


def terms_of(scope: Scope, requested: Mapping[str, Any] | None = None) -> Terms:
    """Return the terms of a scope, with the variables of a trace in `requested`."""
    contract, window = scope.contract, scope.window
    return Terms(
        {
            "pipeline": contract.pipeline,
            "judged_group": contract.group,
            "mirrored_group": _mirrored_group(scope),
            "identity": contract.identity.value,
            "id_scope": contract.id_scope,
            "ordering": contract.ordering,
            "is_queue": contract.is_queue,
            "multiplicity": contract.multiplicity.kind,
            "fan_out_count": contract.multiplicity.count,
            "latency_share": 1 if scope.clean is None else scope.clean.sums.share,
            "has_effect_keys": contract.multiplicity.effect_key is not None,
            "effect_ledger": scope.effect_ledger.value,
            "reader_ledger": scope.reader_ledger.value,
            "window_start": naive(window.start),
            "window_end": naive(window.end),
            "horizon": naive(window.end + contract.grace),
            "allowed_latency": contract.max_latency + contract.clock_skew,
            "clock_skew": contract.clock_skew,
            "redelivery": contract.redelivery or timedelta(0),
            "look_back": contract.look_back,
            "coarsest_clock": COARSEST_CLOCK,
            "earliest_plausible": naive(EARLIEST_PLAUSIBLE),
            "ranges": [
                {"topic": one.topic, "partition": one.partition, "from": one.start, "to": one.end}
                for one in window.offsets
            ],
            "coverage": _coverage(scope),
            **_reach(scope),
            "columns": sorted(
                f"{ledger.value}.{name}"
                for ledger, evidence in scope.evidence.items()
                for name in evidence.present
            ),
            "unknown_contents": sorted(
                f"{ledger.value}.{name}"
                for ledger, spec in contract.ledgers.items()
                for name in spec.unknown or ()
            ),
            "empty_contents": {
                f"{ledger.value}.{name}": text
                for ledger, evidence in scope.evidence.items()
                for name, text in evidence.empty.items()
            },
            "resets": [
                {"at": naive(one.at), "group": one.group}
                for one in contract.annotations
                if one.kind == "offset_reset"
            ],
            **(requested or {}),
        }
    )


def naive(time: datetime | None) -> datetime | None:
    """Return a time in UTC without its zone, as all times in the SQL are."""
    return None if time is None else time.astimezone(UTC).replace(tzinfo=None)


def _mirrored_group(scope: Scope) -> str:
    contract = scope.contract
    return contract.group_of(Ledger.MIRRORED) if Ledger.MIRRORED in contract.ledgers else contract.group


def _coverage(scope: Scope) -> dict[str, dict[str, Any]]:
    """Return the coverage of each declared ledger, by its name."""
    return {
        ledger.value: {
            "is_present": evidence.coverage.is_present,
            "is_sound": evidence.coverage.is_sound,
            "complete_until": naive(evidence.coverage.complete_until),
            "names_all_producers": evidence.coverage.names_all_producers,
        }
        for ledger, evidence in scope.evidence.items()
    }


def _reach(scope: Scope) -> dict[str, Any]:
    """Return from when until when each ledger is complete, as `covered_from_<ledger>` and `covered_until_<ledger>`.

    A ledger without known coverage has neither. `accounted_from` and `accounted_until` are common to all ledgers in
    which the absence of a row makes a loss, if the coverage of all is known.
    """
    known = {
        ledger: (
            naive(evidence.coverage.covers_from) or datetime.min,  # noqa: DTZ901 - naive on purpose
            naive(evidence.coverage.complete_until),
        )
        for ledger, evidence in scope.evidence.items()
        if evidence.coverage.is_sound
    }
    reach: dict[str, Any] = {}
    for ledger, (start, end) in known.items():
        reach |= {f"covered_from_{ledger.value}": start, f"covered_until_{ledger.value}": end}
    if known.keys() >= set(scope.accounting_ledgers):
        spans = [known[ledger] for ledger in scope.accounting_ledgers]
        reach["accounted_from"] = max(start for start, _ in spans)
        reach["accounted_until"] = min(end for _, end in spans if end is not None)
    return reach
