"""Unpacks a bundle: an untrusted zip, whose entries may name any path and unpack to any size.

Only plain files with plain names are written, into an empty folder, up to a number of bytes. Docs: "Decompression
pitfalls" of Python's `zipfile`, and CWE-22.
"""

from __future__ import annotations

import re
import stat
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from tieout.engine.bundle.packing import EVIDENCE, MANIFEST, REQUIRED, Manifest, PackedPart, digest_of
from tieout.errors import BundleError
from tieout.regular_files import opened_file

_NAME: Final = re.compile(rf"(?:{EVIDENCE}/)?[A-Za-z0-9_]{{1,60}}\.(?:json|sql|txt|parquet)", re.ASCII)
_MOST_ENTRIES: Final = 200
_MOST_MANIFEST: Final = 1 << 20
_ENCRYPTED: Final = 0x1
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BLOCK: Final = 1 << 20
_DAMAGED: Final = (zipfile.BadZipFile, zlib.error, EOFError)


@dataclass(frozen=True)
class Opened:
    """A bundle in a folder: its manifest with the manifest's digest, and how its parts differ from the manifest."""

    folder: Path
    manifest: Manifest
    digest: str
    faults: tuple[str, ...]


def open_bundle(file: Path, folder: Path, max_mb: int) -> Opened:
    """Unpack a bundle into an empty folder, and check every part against its digest.

    Raises:
        BundleError: where it is no bundle, unpacks to more megabytes than that, or has an entry that no bundle has.
    """
    try:
        with opened_file(file) as stream, zipfile.ZipFile(stream) as packed:
            entries = packed.infolist()
            _refuse_foreign(file, entries, max_mb)
            damaged = [entry.filename for entry in entries if not _unpacked(packed, entry, folder)]
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise BundleError(f"{file}: expected the zip of a bundle, found none: {error}") from error
    if MANIFEST in damaged:
        raise BundleError(f"{file}: {MANIFEST} is damaged, so that no part can be held against its digest")
    manifest = _manifest(file, folder / MANIFEST)
    faults = [f"{name}: damaged in the zip" for name in damaged]
    faults += _faults(manifest.parts, folder, damaged)
    return Opened(folder, manifest, digest_of(folder / MANIFEST), tuple(faults))


def _refuse_foreign(file: Path, entries: list[zipfile.ZipInfo], max_mb: int) -> None:
    """Refuse a zip with entries that no bundle has, before anything is unpacked."""
    size = sum(entry.file_size for entry in entries)
    if size > max_mb << 20:
        raise BundleError(
            f"{file}: unpacks to {size / (1 << 20):.0f} megabytes: expected at most {max_mb}; raise --max-mb if you "
            "trust who gave it to you"
        )
    if len(entries) > _MOST_ENTRIES:
        raise BundleError(f"{file}: has {len(entries)} entries: expected at most {_MOST_ENTRIES}")
    names = [entry.filename for entry in entries]
    for entry in entries:
        if not _NAME.fullmatch(entry.filename) or names.count(entry.filename) > 1:
            raise BundleError(
                f"{file}: expected the names of a bundle's parts, each once, found {entry.filename!r}"
            )
        mode = entry.external_attr >> 16
        is_plain = stat.S_IFMT(mode) in (0, stat.S_IFREG) and not entry.is_dir()
        if not is_plain or entry.flag_bits & _ENCRYPTED or entry.compress_type not in _METHODS:
            raise BundleError(
                f"{file}: expected plain files, found a link or an unusual entry: {entry.filename!r}"
            )
    missing = [name for name in (MANIFEST, *REQUIRED) if name not in names]
    if missing:
        raise BundleError(f"{file}: expected the zip of a bundle, found none of {', '.join(missing)}")


def _unpacked(packed: zipfile.ZipFile, entry: zipfile.ZipInfo, folder: Path) -> bool:
    """Write one entry, never more bytes than it declares; return whether it could be read to its end."""
    target = folder / entry.filename
    target.parent.mkdir(exist_ok=True)
    remaining = entry.file_size
    try:
        with packed.open(entry) as source, target.open("xb") as written:
            while block := source.read(_BLOCK):
                remaining -= len(block)
                if remaining < 0:
                    return False
                written.write(block)
    except _DAMAGED:
        return False
    return True


def _manifest(file: Path, path: Path) -> Manifest:
    expected = f"{file}: expected the manifest of a bundle in {MANIFEST}"
    if path.stat().st_size > _MOST_MANIFEST:
        raise BundleError(f"{expected}, found a file of {path.stat().st_size} bytes")
    try:
        return Manifest.model_validate_json(path.read_bytes(), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise BundleError(f"{expected}; {place}: {first['msg']}") from error


def _faults(parts: Mapping[str, PackedPart], folder: Path, damaged: list[str]) -> list[str]:
    """Return the differences from the manifest: parts that are changed, missing, or not in it."""
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {
        MANIFEST
    }
    faults = [f"{name}: not in the zip, but in the manifest" for name in sorted(parts.keys() - present)]
    faults += [f"{name}: in the zip, but not in the manifest" for name in sorted(present - parts.keys())]
    for name in sorted((present & parts.keys()) - set(damaged)):
        found, expected = digest_of(folder / name), parts[name].sha256
        if found != expected:
            faults.append(f"{name}: changed: expected SHA-256 {expected}, found {found}")
    return faults
