"""A statement as Markdown: the same numbers, and nothing that a renderer would obey."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest

from tieout.reporting.markdown import code, render_markdown

HOSTILE = "<script>alert(1)</script> [x](http://evil.test) @owner #1 **b** `c` ``d`` | e\n# f"


def test_the_statement_is_rendered(statement: dict[str, Any]) -> None:
    """Verdict, reasons, sums with a column a partition, incidents, checks that failed, and coverage."""
    text = render_markdown(statement)

    assert text.startswith("# BROKEN: `orders_to_warehouse`\n\nexactly once: the guarantee was broken.\n")
    for line in (
        "- `lost: 3, none allowed`",
        "|  | total | `orders-0` | `orders-1` |",
        "| **accepted** | 200 | 100 | 100 |",
        "| lost | 3 | 0 | 3 |",
        "| `LOST` | 3 | `orders-1` | `17` to `19` | `consumer` | `commit before process` |",
        "| `lost` | `critical` | `fail` | `3` | `none allowed` |",
        "- `produced: REORDER_PRODUCER`",
        "| `delivered` | yes | `2026-11-20T11:15:00Z` | 208 | 0 | `a.jsonl:7: torn line` |",
    ):
        assert line in text.splitlines(), line


def test_what_comes_from_outside_is_code(statement: dict[str, Any]) -> None:
    """No HTML, link, mention, issue number, heading or table cell comes out of an id, a topic or a note."""
    statement["group"] = statement["run_id"] = HOSTILE
    statement["reasons"] = [HOSTILE]
    statement["partitions"][0]["topic"] = statement["incidents"][0]["topic"] = HOSTILE
    statement["incidents"][0] |= {"class": HOSTILE, "cause": HOSTILE, "first_position": HOSTILE}
    statement["coverage"]["produced"] |= {"notes": [HOSTILE], "covers": False, "gap": HOSTILE}
    statement["classes"] = {HOSTILE: 1}

    text = render_markdown(statement)

    outside = _without_code(text)
    for sign in ("<script", "evil", "@owner", "#1", "**b**", "# f"):
        assert sign in text
        assert sign not in outside
    tables = [line for line in outside.splitlines() if line.startswith("|")]
    assert tables
    for before, after in pairwise(tables):
        if re.fullmatch(r"\|( -+:? \|)+", after):
            assert before.count("|") == after.count("|")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert [row.count("|") for row in rows] == [table.count("|") for table in tables]


def _without_code(text: str) -> str:
    """Return the text without its code spans, as GitHub Flavored Markdown finds them: runs of equal length."""
    return re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)


@pytest.mark.parametrize("text", ["`", "``", "a`", "`a", "a``b`c", " a "])
def test_a_code_span_holds_any_text(text: str) -> None:
    """The fence is longer than any run of ticks within."""
    span = code(text)
    fence = re.match("`+", span)

    assert fence
    assert fence[0] not in re.findall("`+", text)
    assert span.removeprefix(fence[0]).removesuffix(fence[0]).strip() == text.strip()
