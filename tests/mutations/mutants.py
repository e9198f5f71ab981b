"""Breaks the SQL of the rounds, one place at a time.

DuckDB parses each statement and gives its tree as JSON; a change of one node is written back as SQL. So a mutant is
always SQL that could have been written, and no second parser has to follow the dialect.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import duckdb

from tieout.engine.judging.bucket import Program

Node = dict[str, Any]

_QUERY_OF: Final = re.compile(
    r"""(?P<head>(?:\s*--[^\n]*\n)*\s*
        (?:CREATE\s+(?:OR\s+REPLACE\s+)?(?:TABLE|VIEW)\s+\w+\s+AS
        |CREATE\s+MACRO\s+\w+\([^()]*\)\s+AS\s+TABLE
        |INSERT\s+INTO\s+\w+(?:\s+BY\s+NAME)?)\s+)
        (?P<query>(?:WITH|SELECT|FROM|\()\b.*)""",
    re.DOTALL | re.VERBOSE,
)
_EXPRESSION_OF: Final = re.compile(
    r"(?P<head>(?:\s*--[^\n]*\n)*\s*CREATE\s+MACRO\s+\w+\([^()]*\)\s+AS\s+(?!TABLE\b))(?P<query>.*)",
    re.DOTALL,
)
_NEGATED: Final = {
    "COMPARE_EQUAL": "COMPARE_NOTEQUAL",
    "COMPARE_NOTEQUAL": "COMPARE_EQUAL",
    "COMPARE_LESSTHAN": "COMPARE_GREATERTHANOREQUALTO",
    "COMPARE_GREATERTHAN": "COMPARE_LESSTHANOREQUALTO",
    "COMPARE_LESSTHANOREQUALTO": "COMPARE_GREATERTHAN",
    "COMPARE_GREATERTHANOREQUALTO": "COMPARE_LESSTHAN",
}
_NEXT_TO: Final = {
    "COMPARE_LESSTHAN": "COMPARE_LESSTHANOREQUALTO",
    "COMPARE_GREATERTHAN": "COMPARE_GREATERTHANOREQUALTO",
    "COMPARE_LESSTHANOREQUALTO": "COMPARE_LESSTHAN",
    "COMPARE_GREATERTHANOREQUALTO": "COMPARE_GREATERTHAN",
}


@dataclass(frozen=True)
class Mutant:
    """One change: in which file, in its how many-th statement, what was done there, and the changed statement."""

    file: str
    statement: int
    change: str
    place: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}: statement {self.statement}: {self.change} #{self.place}"

    def applied(self, program: Program) -> Program:
        """Return the program with this change in it."""
        return tuple((name, self._changed(text) if name == self.file else text) for name, text in program)

    def _changed(self, text: str) -> str:
        queries = [one.query for one in duckdb.extract_statements(text)]
        queries[self.statement] = self.text
        return "\n;\n".join(query.rstrip().rstrip(";") for query in queries)


def mutants(file: str, text: str) -> Iterator[Mutant]:
    """Yield every change of a file of rules: a condition less, a comparison turned, two branches swapped."""
    connection = duckdb.connect()
    for number, statement in enumerate(duckdb.extract_statements(text)):
        written = statement.query.rstrip().rstrip(";")
        of_query, of_expression = _QUERY_OF.fullmatch(written), _EXPRESSION_OF.fullmatch(written)
        found = of_query or of_expression
        if found is None:
            continue
        lead = "" if of_query else "SELECT "
        tree = json.loads(_one(connection, "SELECT json_serialize_sql(?::VARCHAR)", lead + found["query"]))
        if tree["error"]:
            raise ValueError(f"{file}: statement {number} is no query: {tree['error_message']}")
        for place, (change, changed) in enumerate(_changes(tree)):
            query = _one(connection, "SELECT json_deserialize_sql(?::JSON)", json.dumps(changed))
            yield Mutant(file, number, change, place, found["head"] + query.removeprefix(lead))


def _one(connection: duckdb.DuckDBPyConnection, sql: str, value: str) -> str:
    row = connection.execute(sql, [value]).fetchone()
    return "" if row is None else str(row[0])


def _changes(tree: Node) -> Iterator[tuple[str, Node]]:
    """Yield what is done, and a copy of the tree in which it is."""
    for path, node in _nodes(tree, ()):
        for change, changed in _of_node(node):
            yield change, _replaced(tree, path, changed)


def _of_node(node: Node) -> Iterator[tuple[str, Node]]:
    kind = node.get("type")
    if kind in ("CONJUNCTION_AND", "CONJUNCTION_OR"):
        other = {"CONJUNCTION_AND": "CONJUNCTION_OR", "CONJUNCTION_OR": "CONJUNCTION_AND"}[kind]
        yield "AND and OR exchanged", node | {"type": other}
        children = node["children"]
        for number in range(len(children)):
            left = children[:number] + children[number + 1 :]
            yield f"condition {number} left out", left[0] if len(left) == 1 else node | {"children": left}
    if kind in _NEGATED:
        yield "comparison negated", node | {"type": _NEGATED[kind]}
    if kind in _NEXT_TO:
        yield "boundary moved", node | {"type": _NEXT_TO[kind]}
    if kind == "CASE_EXPR":
        checks = node["case_checks"]
        for number in range(len(checks)):
            swapped = copy.deepcopy(node)
            if number + 1 < len(checks):
                one, other = swapped["case_checks"][number : number + 2]
                one["then_expr"], other["then_expr"] = other["then_expr"], one["then_expr"]
            else:
                one = swapped["case_checks"][number]
                one["then_expr"], swapped["else_expr"] = swapped["else_expr"], one["then_expr"]
            yield f"branches {number} and {number + 1} swapped", swapped
    if kind == "OPERATOR_NOT":
        yield "NOT left out", node["children"][0]


def _nodes(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Node]]:
    """Yield every node of the tree with the way to it."""
    if isinstance(value, dict):
        if "type" in value:
            yield path, value
        for name, child in value.items():
            yield from _nodes(child, (*path, name))
    if isinstance(value, list):
        for number, child in enumerate(value):
            yield from _nodes(child, (*path, number))


def _replaced(tree: Node, path: tuple[str | int, ...], node: Node) -> Node:
    changed: Any = copy.deepcopy(tree)
    at = changed
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = node
    return dict(changed)
