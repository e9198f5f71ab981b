"""Verifies a bundle: checks its digests, runs its SQL again, and compares the result with the statement.

The SQL is the bundle's own, and untrusted: it runs in a database in memory that reads only this folder, writes nothing,
loads no extension, and runs only the kinds of statements that a bundle has. Docs: DuckDB,
"Securing DuckDB".
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

from tieout import __version__, settings
from tieout.contracts import Contract
from tieout.engine.bundle.opening import Opened, open_bundle
from tieout.engine.bundle.packing import BREAKS, CONTRACT, SCRIPT, STATEMENT, Manifest
from tieout.engine.bundle.script import digest_of_rules, literal, rules_digest
from tieout.errors import BundleError
from tieout.folders import full_device_named
from tieout.verdicts import judge

_ALLOWED: Final = frozenset(
    {
        "SELECT",
        "INSERT",
        "UPDATE",
        "DELETE",
        "CREATE",
        "ALTER",
        "DROP",
        "SET",
        "VARIABLE_SET",
        "PREPARE",
        "EXECUTE",
    }
)
_DIFFERENCES: Final = 100
_COUNTS: Final = "SELECT part, count(*), count_if(is_same) FROM compared GROUP BY part ORDER BY part"
_FIRST: Final = "SELECT part, subject, stated, found FROM compared WHERE NOT is_same ORDER BY part, subject"
_LEADING: Final = re.compile(r"(?:\s|--[^\n]*\n)*")
_PREPARED: Final = re.compile(_LEADING.pattern + r"PREPARE\s+\w+\s+AS\s", re.IGNORECASE)
_SETTING: Final = re.compile(
    r"(?:SET VARIABLE|SET (?:asof_loop_join_threshold|nested_loop_join_threshold))\s"
)
"""What a bundle may set: variables, and how joins are planned."""
_SPILLED: Final = 8
"""How many times its memory a verification may write to disk."""


@dataclass(frozen=True)
class Part:
    """The comparison of one kind, such as `class` or `break`: how many were compared, and how many are the same."""

    name: str
    compared: int
    same: int


@dataclass(frozen=True)
class Verification:
    """The result of a verification; `faults` are differences, `notes` further information."""

    manifest: Manifest
    digest: str
    parts: tuple[Part, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not self.faults


def verify(
    file: Path,
    max_mb: int,
    expected_digest: str | None = None,
    progress: Callable[[str], None] = lambda _step: None,
) -> Verification:
    """Return whether a bundle still says what its statement says.

    Raises:
        BundleError: where it is no bundle, or its SQL asks for more than judging takes.
        DiskFullError: where there is no space to unpack it.
        OSError: where the file cannot be read.
    """
    spill = settings.spill_folder()
    with full_device_named(Path(spill)), tempfile.TemporaryDirectory(prefix="tieout-", dir=spill) as name:
        folder = Path(name) / "bundle"
        folder.mkdir()
        progress(f"checking the digests of {file}")
        opened = open_bundle(file, folder, max_mb)
        faults = list(opened.faults)
        if expected_digest is not None and opened.digest != expected_digest.lower():
            faults.append(f"the bundle: expected digest {expected_digest.lower()}, found {opened.digest}")
        progress("judging the evidence again")
        parts, differing = _compared(opened, Path(name) / "spilled")
        verdict_faults, notes = _verdict(opened)
        return Verification(
            manifest=opened.manifest,
            digest=opened.digest,
            parts=parts,
            faults=(*faults, *differing, *verdict_faults),
            notes=(*_of_rules(opened), *notes),
        )


def _compared(opened: Opened, spill: Path) -> tuple[tuple[Part, ...], tuple[str, ...]]:
    """Return the comparison by the bundle's own SQL, and the first differences in words."""
    script = _script(opened)
    with duckdb.connect(":memory:") as connection:
        try:
            _refuse_more(connection, script)
            _lock(connection, opened.folder, spill)
            connection.execute(script)
            parts = tuple(Part(*row) for row in connection.execute(_COUNTS).fetchall())
            first = connection.execute(_FIRST).fetchmany(_DIFFERENCES)
        except duckdb.Error as error:
            if opened.faults:
                return (), (f"{SCRIPT}: cannot be run on the changed parts: {_first_line(error)}",)
            raise BundleError(
                f"{SCRIPT}: fails with DuckDB {duckdb.__version__}: {_first_line(error)}; the bundle was made with "
                f"DuckDB {opened.manifest.duckdb}, which verifies it without Tieout"
            ) from error
    if not parts:
        raise BundleError(f"{SCRIPT}: expected it to compare something, found nothing")
    faults = [f"{part} {subject}: stated {stated}, found {found}" for part, subject, stated, found in first]
    more = sum(one.compared - one.same for one in parts) - len(first)
    return parts, (*faults, *((f"{more} more differences",) if more else ()))


def _script(opened: Opened) -> str:
    """Return the bundle's SQL with the paths of its files in this folder."""
    try:
        script = (opened.folder / SCRIPT).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BundleError(f"{SCRIPT}: cannot be read: {error}") from error
    evidence = [name for name in opened.manifest.parts if name.startswith("evidence/")]
    for name in (*evidence, STATEMENT, BREAKS):
        script = script.replace(literal(name), literal(str(opened.folder / name)))
    return script


def _refuse_more(connection: duckdb.DuckDBPyConnection, script: str) -> None:
    """Refuse statements of kinds that no bundle has.

    Raises:
        BundleError: naming the first of them.
    """
    for one in connection.extract_statements(script):
        statements = [one]
        if one.type.name == "PREPARE":
            statements = connection.extract_statements(_PREPARED.sub("", one.query, count=1))
        for each in statements:
            kind, text = each.type.name, _LEADING.sub("", each.query, count=1)
            if kind not in _ALLOWED or (kind == "SET" and not _SETTING.match(text)):
                raise BundleError(
                    f"{SCRIPT}: expected only statements that judge, found {kind}: {text[:80]!r}; this is not the SQL "
                    "of a bundle"
                )


def _lock(connection: duckdb.DuckDBPyConnection, folder: Path, spill: Path) -> None:
    """Restrict a connection irrevocably to reading one folder."""
    memory = settings.bucket_memory(is_here=True)
    options: dict[str, Any] = {
        "memory_limit": f"{memory}B",
        "temp_directory": str(spill),
        "max_temp_directory_size": f"{_SPILLED * memory}B",
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allowed_directories": [f"{folder}/"],
        "enable_external_access": False,
    }
    for name, value in options.items():
        connection.execute(f"SET {name} = {literal(value)}")


def _verdict(opened: Opened) -> tuple[list[str], list[str]]:
    """Return the differences of contract and verdict, and notes about them.

    Another version may judge the same numbers differently: that is no difference of the bundle.
    """
    try:
        statement = json.loads((opened.folder / STATEMENT).read_bytes())
        text = (opened.folder / CONTRACT).read_text(encoding="utf-8")
        verdict, digest = statement["verdict"], statement["contract_digest"]
        contract = Contract.from_json(text, Path())
        judged = judge(contract, statement)
    except (ValueError, KeyError, TypeError) as error:
        # A contract of another version need not be one of this.
        return [], [f"whether the verdict follows from the numbers cannot be told: {_first_line(error)}"]
    faults = []
    is_own = opened.manifest.tieout == __version__
    if verdict != opened.manifest.verdict:
        faults.append(f"verdict: the statement says {verdict}, the manifest {opened.manifest.verdict}")
    if contract.digest != digest and is_own:
        faults.append(f"{CONTRACT}: expected the statement's contract {digest}, found {contract.digest}")
    if judged.verdict == verdict:
        return faults, [f"verdict: {verdict}, which this version finds of the same numbers, too"]
    if is_own:
        return [*faults, f"verdict: stated {verdict}, found {judged.verdict} of the same numbers"], []
    return faults, [
        f"verdict: {verdict}; this version, {__version__}, finds {judged.verdict} of the same numbers"
    ]


def _of_rules(opened: Opened) -> list[str]:
    bundled = digest_of_rules((opened.folder / SCRIPT).read_text(encoding="utf-8"))
    own = "the same as" if bundled == rules_digest() else "others than"
    return [f"rules: those of Tieout {opened.manifest.tieout}, {own} the installed ones of {__version__}"]


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
