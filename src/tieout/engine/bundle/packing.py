"""The zip of a bundle, and its manifest: every part with its digest.

The digest of the manifest is that of the bundle: kept elsewhere, it reveals a bundle that was made again.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from tieout import __version__

DEFAULT_MB: Final = 1024
MANIFEST: Final = "manifest.json"
CONTRACT: Final = "contract.json"
STATEMENT: Final = "statement.json"
SCRIPT: Final = "verify.sql"
BREAKS: Final = "breaks.parquet"
READ_ME: Final = "README.txt"
EVIDENCE: Final = "evidence"
_OF_STATEMENT: Final = ("pipeline", "group", "window", "run_id", "verdict")
REQUIRED: Final = (CONTRACT, STATEMENT, SCRIPT, BREAKS)
_ZIP_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every entry, so that equal bundles are equal bytes."""
_BLOCK: Final = 1 << 20
_ABOUT: Final = """\
An audit bundle of Tieout: one window of {pipeline}, {start} to {end}, judged {verdict}.

verify.sql       judges the evidence again and compares: unpack, then `duckdb -bail < verify.sql` in this folder, or
                 python -c "import duckdb; print(duckdb.sql(open('verify.sql').read()))"
statement.json   what was said; its `coverage` has the digests of the source's files
breaks.parquet   every break
evidence/        the rows that were judged, in Tieout's columns
contract.json    what was promised
manifest.json    the SHA-256 of each of these

It was judged by DuckDB {duckdb}. With Tieout installed, `tieout verify FILE.zip` does the same and checks the digests.
"""


@dataclass(frozen=True)
class BundleRequest:
    """The request for a bundle: its file, the megabytes it may hold, and whether it has hashes of contents."""

    file: Path
    max_mb: int
    has_contents: bool


class PackedPart(BaseModel):
    """A packed part of a bundle."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str
    bytes: int


class Span(BaseModel):
    """A window's bounds, and its ranges of offsets if it has any."""

    model_config = ConfigDict(frozen=True, extra="allow")

    start: str
    end: str


class Manifest(BaseModel):
    """The parts of a bundle, the versions that judged it, and its window and verdict."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bundle_version: Literal[1]
    tieout: str
    duckdb: str
    pipeline: str
    group: str
    window: Span
    run_id: str
    verdict: str
    has_contents: bool
    rows: dict[str, int]
    parts: dict[str, PackedPart]


@dataclass(frozen=True)
class Facts:
    """The content of a manifest besides digests: the statement, the rows of each table, DuckDB's version."""

    statement: Mapping[str, Any]
    rows: Mapping[str, int]
    duckdb: str
    has_contents: bool


def pack(folder: Path, facts: Facts, file: Path) -> str:
    """Zip a folder's files with their manifest, and return the digest of the bundle.

    Raises:
        OSError: where the zip cannot be written.
    """
    (folder / READ_ME).write_text(_about(facts), encoding="utf-8")
    parts = sorted(path for path in folder.rglob("*") if path.is_file())
    named = {path.relative_to(folder).as_posix(): path for path in parts}
    of_statement = {name: facts.statement[name] for name in _OF_STATEMENT}
    manifest = Manifest(
        bundle_version=1,
        tieout=__version__,
        duckdb=facts.duckdb,
        **of_statement,
        has_contents=facts.has_contents,
        rows=dict(facts.rows),
        parts={
            name: PackedPart(sha256=digest_of(path), bytes=path.stat().st_size)
            for name, path in named.items()
        },
    )
    text = manifest.model_dump_json(indent=2).encode() + b"\n"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(_entry(MANIFEST), text)
        for name, path in named.items():
            with path.open("rb") as source, packed.open(_entry(name), "w", force_zip64=True) as target:
                while block := source.read(_BLOCK):
                    target.write(block)
    return hashlib.sha256(text).hexdigest()


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _ZIP_TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _about(facts: Facts) -> str:
    window = facts.statement["window"]
    return _ABOUT.format(
        pipeline=facts.statement["pipeline"],
        start=window["start"],
        end=window["end"],
        verdict=facts.statement["verdict"],
        duckdb=facts.duckdb,
    )
