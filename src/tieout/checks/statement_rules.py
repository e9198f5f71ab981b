"""Rules about the stored statement itself: is it complete, does it add up, does its verdict fit.

They say nothing about the pipeline: where one fails, the evidence or this software is defective, and
the suites let it force UNKNOWN.
"""

# ruff: noqa: S608 - what gets into the SQL are names from fixed sets, see `refuse_unknown`

from __future__ import annotations

from tieout.checks.measuring import (
    COUNT_COLUMNS,
    COUNTED_NAMES,
    Finding,
    MeasureRule,
    Parameter,
    PartitionRule,
    Row,
    count_of,
    offsets_in,
    refuse_unknown,
    total_of,
)
from tieout.model import OFFSET_STATES, Verdict

_INCIDENTS_LISTED = 10_000
"""So many incidents a statement lists at most; breaks of further ones are in the total alone."""


class ExpectRunToMatchContract(MeasureRule):
    """The run was judged by this contract, and its columns say what its statement says."""

    contract_digest: str | Parameter
    guarantee: str | Parameter

    def measures(self) -> dict[str, str]:
        """Return the run's contract and guarantee, and how many of its columns differ from its statement."""
        statement_keys = {
            "run_id::text": "run_id",
            "pipeline": "pipeline",
            "consumer_group": "group",
            "guarantee": "guarantee",
            "contract_digest": "contract_digest",
            "verdict": "verdict",
            "breaks_total::text": "breaks_total",
        }
        differing = [
            f"(stored.{column} is distinct from stored.statement ->> '{key}')::int"
            for column, key in statement_keys.items()
        ]
        return {
            "contract_digest": "stored.contract_digest",
            "guarantee": "stored.guarantee",
            "differing": f"({' + '.join(differing)})",
        }

    def judged(self, row: Row) -> Finding:
        """Return whether the contract is the same and no column differs."""
        holds = (
            row["contract_digest"] == self.contract_digest
            and row["guarantee"] == self.guarantee
            and row["differing"] == 0
        )
        observed = (
            f"contract {row['contract_digest'][:12]}, {row['guarantee']}, "
            f"{row['differing']} columns differ from the statement"
        )
        limit = f"contract {str(self.contract_digest)[:12]}, {self.guarantee}, 0 columns differ"
        return Finding(holds, observed, limit)


class ExpectStoredRowsToEqualStatement(MeasureRule):
    """The partition rows and the counts in their tables are those of the statement as it was written."""

    def measures(self) -> dict[str, str]:
        """Return how many partition rows and how many counts are on one side only, or differ."""
        return {
            "partitions": """(select count(*) from
                (select jsonb_build_array(p.topic, p.partition) as place, to_jsonb(p) - 'run_id' - 'offsets'
                          as counts
                   from tieout.statement_partition p where p.run_id = run.run_id) kept
                full join
                (select jsonb_build_array(e -> 'topic', e -> 'partition') as place, e as counts
                   from jsonb_array_elements(stored.statement -> 'partitions') e) told
                using (place) where (told.counts @> kept.counts) is not true)""",
            "counts": """(select count(*) from
                (select c.kind, c.name, c.count
                   from tieout.statement_count c where c.run_id = run.run_id) kept
                full join
                (select 'class' as kind, key as name, value::bigint as told
                   from jsonb_each_text(stored.statement -> 'classes')
                 union all
                 select 'flag', key, value::bigint from jsonb_each_text(stored.statement -> 'flags')) told
                using (kind, name) where (kept.count = told.told) is not true)""",
        }

    def judged(self, row: Row) -> Finding:
        """Return whether nothing differs."""
        observed = f"{row['partitions']} partition rows and {row['counts']} counts differ"
        return Finding(row["partitions"] == 0 and row["counts"] == 0, observed, "0 differ")


class ExpectBreaksToBeCounted(MeasureRule):
    """Every break is in an incident or in none, in the total, and under a class that the statement counts."""

    def measures(self) -> dict[str, str]:
        """Return the totals, and what is not accounted for."""
        counted = (
            "select 1 from tieout.statement_count c"
            " where c.run_id = run.run_id and c.kind = 'class' and c.count > 0 and c.name ="
        )
        return {
            "total": "stored.breaks_total",
            "incidents": "(select count(*) from tieout.incident i where i.run_id = run.run_id)",
            "in_incidents": """(select coalesce(sum(i.breaks), 0)::bigint from tieout.incident i
                where i.run_id = run.run_id)""",
            "stored_breaks": "(select count(*) from tieout.break b where b.run_id = run.run_id)",
            "uncounted": f"""((select count(*) from tieout.break b
                  where b.run_id = run.run_id and not exists ({counted} b.class))
                + (select count(*) from tieout.incident i
                  where i.run_id = run.run_id and not exists ({counted} i.class)))""",
            "misfiled": """(select count(*) from tieout.incident i
                left join (select b.incident_id, count(*) as breaks, count(distinct b.class) as classes,
                             min(b.class) as class
                           from tieout.break b where b.run_id = run.run_id group by b.incident_id) own
                  on own.incident_id = i.incident_id
                where i.run_id = run.run_id
                  and (own.breaks > i.breaks or own.classes > 1 or own.class <> i.class
                       or (own.breaks is null and i.breaks > 0 and not stored.breaks_truncated)))""",
        }

    def judged(self, row: Row) -> Finding:
        """Return whether the totals agree and nothing is unaccounted for."""
        is_listed_in_full = row["incidents"] < _INCIDENTS_LISTED
        holds = (
            row["in_incidents"] <= row["total"]
            and (row["in_incidents"] == row["total"] or not is_listed_in_full)
            and row["stored_breaks"] <= row["total"]
            and row["uncounted"] == 0
            and row["misfiled"] == 0
        )
        observed = (
            f"{row['total']} breaks in total, {row['in_incidents']} in incidents, "
            f"{row['stored_breaks']} stored, {row['uncounted']} of an uncounted class, "
            f"{row['misfiled']} incidents that differ from their breaks"
        )
        return Finding(holds, observed, "as many in incidents as in total, 0 uncounted, 0 differ")


class ExpectPartitionIdentityToHold(PartitionRule):
    """One count is the sum of others in every partition."""

    total: str
    parts: list[str]

    def refuse_unusable(self) -> None:
        """Refuse unknown columns, and an empty sum."""
        refuse_unknown([self.total, *self.parts], COUNT_COLUMNS, "total and parts")
        if not self.parts:
            raise ValueError("parts: expected the columns that are summed, found none")

    def condition(self) -> str:
        """Return the identity; a NULL on either side does not satisfy it."""
        return f"p.{self.total} = {' + '.join(f'p.{part}' for part in self.parts)}"

    def sentence(self) -> str:
        """Return the identity for people."""
        return f"{self.total} = {' + '.join(self.parts)}"


class ExpectCountsNotToBeNegative(PartitionRule):
    """No count is below zero or missing. `unexplained` has a rule of its own."""

    def condition(self) -> str:
        """Return the condition on all counts."""
        return " and ".join(f"p.{column} >= 0" for column in COUNT_COLUMNS if column != "unexplained")

    def sentence(self) -> str:
        """Return the condition for people."""
        return "every count is 0 or more"


class ExpectOffsetsToAddUp(PartitionRule):
    """Every position of the log's judged range has one state; a partition without a log has none.

    A sparse partition's positions are not consecutive numbers, so that its range says nothing of how many there are.
    """

    def condition(self) -> str:
        """Return the balance of the range; `offsets` holds its bounds and one count for each state."""
        states = """select sum(value::bigint) from jsonb_each_text(p.offsets)
                    where key not in ('from', 'to', 'is_sparse')"""
        width = "(p.offsets ->> 'to')::bigint - (p.offsets ->> 'from')::bigint"
        is_sparse = "coalesce((p.offsets ->> 'is_sparse')::boolean, false)"
        return f"p.offsets is null or {is_sparse} or {width} = ({states}) + p.unexplained"

    def sentence(self) -> str:
        """Return the condition for people."""
        return "to - from = all states + unexplained, unless sparse"


class ExpectNothingUnexplained(PartitionRule):
    """Every position has a state; a surplus on one partition does not cancel a remainder on another."""

    def condition(self) -> str:
        """Return the condition."""
        return "p.unexplained = 0"

    def sentence(self) -> str:
        """Return the condition for people."""
        return "unexplained = 0"


class ExpectVerdictNotToOverlook(MeasureRule):
    """The verdict is none of `verdicts` while one of the counts is above zero."""

    verdicts: list[str]
    columns: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    offset_states: tuple[str, ...] = ()

    def refuse_unusable(self) -> None:
        """Refuse unknown names, and a rule without counts."""
        refuse_unknown(self.verdicts, list(Verdict), "verdicts")
        refuse_unknown(self.columns, COUNT_COLUMNS, "columns")
        refuse_unknown(self.names, COUNTED_NAMES, "names")
        refuse_unknown(self.offset_states, OFFSET_STATES, "offset_states")
        if not self.verdicts or not (self.columns or self.names):
            raise ValueError("expected verdicts, and columns or names, found none")

    def measures(self) -> dict[str, str]:
        """Return the sums of the columns, how often the names occur, and how many positions are in the states."""
        totals = {column: total_of(column) for column in self.columns}
        positions = {f"offsets_{state}": offsets_in(state) for state in self.offset_states}
        return {**totals, **{f'"{name}"': count_of([name]) for name in self.names}, **positions}

    def judged(self, row: Row) -> Finding:
        """Return whether the verdict is another one, or there is nothing to overlook."""
        positions = [f"offsets_{state}" for state in self.offset_states]
        counts = {name: row[name] for name in (*self.columns, *self.names, *positions)}
        counted = ", ".join(f"{name} {count}" for name, count in counts.items())
        holds = not any(counts.values()) or row["verdict"] not in self.verdicts
        limit = f"not {' or '.join(self.verdicts)} unless all are 0"
        return Finding(holds, f"{row['verdict']} with {counted}", limit)


class ExpectVerdictToRestOnCoverage(MeasureRule):
    """The verdict is none of `verdicts` while a ledger that the contract declares does not cover."""

    verdicts: list[str]
    ledgers: list[str] | Parameter

    def refuse_unusable(self) -> None:
        """Refuse unknown verdicts, and a contract without ledgers."""
        refuse_unknown(self.verdicts, list(Verdict), "verdicts")
        if not self.verdicts or not self.ledgers:
            raise ValueError("expected verdicts and ledgers, found none")

    def measures(self) -> dict[str, str]:
        """Return the ledgers that the statement says cover its window."""
        return {"covering": covering_ledgers()}

    def judged(self, row: Row) -> Finding:
        """Return whether all ledgers cover, or the verdict does not claim so."""
        covering = set(row["covering"].split(","))
        lacking = [ledger for ledger in self.ledgers if ledger not in covering]
        observed = f"{row['verdict']}, not covering: {', '.join(lacking) or 'none'}"
        limit = f"not {' or '.join(self.verdicts)} unless every declared ledger covers"
        return Finding(not lacking or row["verdict"] not in self.verdicts, observed, limit)


class ExpectEffectsToBeKnown(MeasureRule):
    """KEPT is not said of effects nobody saw: the output is a ledger, or reads are declared effects."""

    effects: str | Parameter
    ledgers: list[str] | Parameter

    def measures(self) -> dict[str, str]:
        """Return nothing but the verdict, which every row has."""
        return {}

    def judged(self, row: Row) -> Finding:
        """Return whether effects are known, or the verdict does not claim so."""
        is_known = "delivered" in self.ledgers or self.effects == "read"
        observed = f"{row['verdict']} with {', '.join(self.ledgers)}; effects: {self.effects}"
        limit = "not KEPT without delivered, unless effects: read"
        return Finding(is_known or row["verdict"] != Verdict.KEPT, observed, limit)


def covering_ledgers() -> str:
    """Return SQL for the names of the ledgers that cover the window, joined by commas; '' where none does."""
    return (
        "coalesce((select string_agg(key, ',' order by key) from jsonb_each(stored.statement -> 'coverage')"
        " where value ->> 'covers' = 'true'), '')"
    )
