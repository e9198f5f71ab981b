"""The rules that a suite may use, by their type in its file.

Only these: Great Expectations' own expectations pass on empty batches, NULLs and missing limits.
"""

from __future__ import annotations

from typing import Final

from tieout.checks.guarantee_rules import (
    ExpectBreaksWithinLimit,
    ExpectNoRegressionUnannotated,
    ExpectRatioWithinBudget,
)
from tieout.checks.measuring import MeasureRule
from tieout.checks.statement_rules import (
    ExpectBreaksToBeCounted,
    ExpectCountsNotToBeNegative,
    ExpectEffectsToBeKnown,
    ExpectNothingUnexplained,
    ExpectOffsetsToAddUp,
    ExpectPartitionIdentityToHold,
    ExpectRunToMatchContract,
    ExpectStoredRowsToEqualStatement,
    ExpectVerdictNotToOverlook,
    ExpectVerdictToRestOnCoverage,
)

RULES: Final[dict[str, type[MeasureRule]]] = {
    "expect_breaks_to_be_counted": ExpectBreaksToBeCounted,
    "expect_breaks_within_limit": ExpectBreaksWithinLimit,
    "expect_counts_not_to_be_negative": ExpectCountsNotToBeNegative,
    "expect_effects_to_be_known": ExpectEffectsToBeKnown,
    "expect_no_regression_unannotated": ExpectNoRegressionUnannotated,
    "expect_nothing_unexplained": ExpectNothingUnexplained,
    "expect_offsets_to_add_up": ExpectOffsetsToAddUp,
    "expect_partition_identity_to_hold": ExpectPartitionIdentityToHold,
    "expect_ratio_within_budget": ExpectRatioWithinBudget,
    "expect_run_to_match_contract": ExpectRunToMatchContract,
    "expect_stored_rows_to_equal_statement": ExpectStoredRowsToEqualStatement,
    "expect_verdict_not_to_overlook": ExpectVerdictNotToOverlook,
    "expect_verdict_to_rest_on_coverage": ExpectVerdictToRestOnCoverage,
}
