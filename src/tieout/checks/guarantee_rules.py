"""Rules about the pipeline: what the contract's guarantee allows (docs/reference/taxonomy.md, section 6)."""

# ruff: noqa: S608 - what gets into the SQL are names from fixed sets, see `refuse_unknown`

from __future__ import annotations

from fractions import Fraction
from typing import Final

from tieout.checks.measuring import (
    COUNT_COLUMNS,
    COUNTED_NAMES,
    Finding,
    MeasureRule,
    Parameter,
    Row,
    count_of,
    limit_of,
    quoted,
    refuse_unknown,
    total_of,
)

_RATIOS: Final = {
    "loss_ratio": (total_of("lost"), f"({total_of('accepted')} - {total_of('in_flight')})"),
    "duplicate_ratio": (total_of("further_effects"), total_of("first_effects")),
    "late_ratio": (count_of(["LATE", "OVERDUE"]), total_of("accepted")),
}
"""Part and whole of each budget, over all partitions of the statement."""

_EMPTY_OBJECT: Final = "{{}}"
"""An empty JSON object in a query, in which the library replaces texts in single braces."""


_DOUBTED: Final = {"loss_ratio": ["LOST"], "late_ratio": ["OVERDUE"]}
"""The possibly unconfirmed share of a budget's part, which counts in no budget."""


def _unconfirmed(classes: list[str]) -> str:
    """Return the query for the number of breaks of the classes that the run could not confirm."""
    return f"""(select coalesce(sum(value::bigint), 0)::bigint
        from jsonb_each_text(coalesce(stored.statement -> 'unconfirmed', '{_EMPTY_OBJECT}'))
        where key in ({quoted(classes)}))"""


class ExpectBreaksWithinLimit(MeasureRule):
    """Breaks of some classes are not more than a limit, wherever the run stored them.

    They are looked for in the counts, the incidents, the breaks and, where named, the partitions' columns,
    and the largest number counts: what one table lost is still seen in another.
    """

    classes: list[str]
    columns: tuple[str, ...] = ()
    max_count: int | float | str | Parameter = 0

    def refuse_unusable(self) -> None:
        """Refuse unknown names, a rule that counts nothing, and an invalid limit."""
        refuse_unknown(self.classes, COUNTED_NAMES, "classes")
        refuse_unknown(self.columns, COUNT_COLUMNS, "columns")
        if not self.classes:
            raise ValueError("classes: expected the classes that are counted, found none")
        limit_of(self.max_count)

    def measures(self) -> dict[str, str]:
        """Return the number of breaks in each table, and the unconfirmed ones."""
        of_class = f"in ({quoted(self.classes)})"
        return {
            "counted": count_of(self.classes),
            "in_incidents": f"""(select coalesce(sum(i.breaks), 0)::bigint from tieout.incident i
                where i.run_id = run.run_id and i.class {of_class})""",
            "in_breaks": f"""(select count(*) from tieout.break b
                where b.run_id = run.run_id and b.class {of_class})""",
            **{f"in_{column}": total_of(column) for column in self.columns},
            "unconfirmed": _unconfirmed(self.classes),
        }

    def judged(self, row: Row) -> Finding:
        """Return whether the largest number is within the limit."""
        limit = limit_of(self.max_count)
        places = ("counted", "in_incidents", "in_breaks", *(f"in_{column}" for column in self.columns))
        found = max(row[place] for place in places)
        unconfirmed = f", {row['unconfirmed']} of them unconfirmed" if row["unconfirmed"] else ""
        return Finding(
            limit is None or found <= limit,
            f"{found}{unconfirmed}",
            str(self.max_count),
            is_confirmed=limit is None or found - row["unconfirmed"] > limit,
        )


class ExpectNoRegressionUnannotated(MeasureRule):
    """No commit went back, except where the contract tells that an operator reset the group's offsets."""

    def measures(self) -> dict[str, str]:
        """Return the regressions, those that the run counts as annotated, and the contract's annotations."""
        return {
            "found": count_of(["COMMIT_REGRESSION"]),
            "flagged": count_of(["annotated"]),
            "bare": """(select count(*) from tieout.break b where b.run_id = run.run_id
                and b.class = 'COMMIT_REGRESSION' and not b.flags @> '["annotated"]')""",
            "resets": """(select count(*) from jsonb_array_elements(
                    coalesce(stored.contract -> 'annotations', '[]')) act
                where act ->> 'kind' = 'offset_reset'
                  and coalesce(act ->> 'group', stored.consumer_group) = stored.consumer_group)""",
        }

    def judged(self, row: Row) -> Finding:
        """Return whether every regression is annotated; without an annotation in the contract none is."""
        excused = row["flagged"] if row["resets"] else 0
        failing = max(row["found"] - excused, row["bare"])
        return Finding(failing <= 0, f"{row['found']}, {excused} of them annotated", "0 without annotation")


class ExpectRatioWithinBudget(MeasureRule):
    """A ratio over all partitions is within its budget: 0/0 is 0, and x/0 exceeds every budget."""

    ratio: str
    max_ratio: int | float | str | Parameter

    def refuse_unusable(self) -> None:
        """Refuse an unknown ratio and an invalid limit."""
        refuse_unknown([self.ratio], _RATIOS, "ratio")
        limit_of(self.max_ratio)

    def measures(self) -> dict[str, str]:
        """Return the ratio's part and whole, and how much of the part the run could not confirm."""
        part, whole = _RATIOS[self.ratio]
        doubted = _DOUBTED.get(self.ratio)
        return {"part": part, "whole": whole, "unconfirmed": _unconfirmed(doubted) if doubted else "0"}

    def judged(self, row: Row) -> Finding:
        """Return whether the budget is kept, and whether what is confirmed exceeds it.

        They are compared as fractions, so that 7 of 100 is within 0.07.
        """
        limit, part, whole = limit_of(self.max_ratio), row["part"], row["whole"]

        def fits(some: int) -> bool:
            return limit is None or some <= 0 or (whole > 0 and Fraction(some, whole) <= limit)

        share = f" = {part / whole:.6g}" if whole else ""
        unconfirmed = f", {row['unconfirmed']} of them unconfirmed" if row["unconfirmed"] else ""
        return Finding(
            fits(part),
            f"{part} of {whole}{share}{unconfirmed}",
            str(self.max_ratio),
            is_confirmed=not fits(part - row["unconfirmed"]),
        )
