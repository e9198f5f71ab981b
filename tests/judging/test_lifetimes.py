"""Tables of the rounds go when nothing asks for them any more, and no earlier."""

from __future__ import annotations

from tieout.engine.judging.lifetimes import without_use

MACRO = "CREATE MACRO proofs(name) AS TABLE FROM query_table('proof_' || name);\n"


def test_a_table_stays_as_long_as_something_asks_for_it_by_another_name() -> None:
    """Through a view of a view, a macro that puts its name together, and a prepared statement."""
    texts = [
        "CREATE TABLE a AS FROM given; -- b\nCREATE VIEW b AS FROM a;\nCREATE VIEW c AS FROM b;\n",
        f"CREATE TABLE proof_log AS FROM given;\n{MACRO}PREPARE more AS INSERT INTO e FROM d;\n",
        "CREATE TABLE d (x INT);\nCREATE TABLE e (x INT);\nCREATE TABLE f AS FROM c;\n",
        "EXECUTE more;\nCREATE TABLE g AS FROM proofs('log');\n",
        "CREATE TABLE h AS FROM f;\n",
    ]

    assert without_use(texts, ["given", "unused"], ["g"]) == [
        [],
        ["given"],
        ["a"],
        ["d", "e", "proof_log"],
        ["f", "h"],
    ]
