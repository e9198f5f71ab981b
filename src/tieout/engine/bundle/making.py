"""A bundle made of what a run found: written, packed, verified, and only then put in place."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tieout.contracts import Contract
from tieout.engine.bundle.packing import Wanted, pack
from tieout.engine.bundle.parts import write_parts
from tieout.engine.bundle.verifying import verify
from tieout.engine.reconciling import Reconciliation
from tieout.errors import BundleError
from tieout.folders import full_device_named


@dataclass(frozen=True)
class Made:
    """A bundle that was made: its digest, to be kept elsewhere, and the bytes of its file."""

    digest: str
    size: int


def make_bundle(
    found: Reconciliation, contract: Contract, wanted: Wanted, progress: Callable[[str], None]
) -> Made:
    """Write the bundle of a run, verify it, and put it in the place of what was there.

    Raises:
        BundleError: where it would be too large, contents cannot be left out, or it does not say what the run says;
            what was there before is untouched.
        DiskFullError: where its folder has no space left; the same.
        OSError: where its folder cannot be written otherwise.
    """
    beside = wanted.file.parent
    with full_device_named(beside), tempfile.TemporaryDirectory(prefix=".tieout-", dir=beside) as name:
        folder = Path(name) / "parts"
        folder.mkdir()
        facts = write_parts(found, contract, folder, wanted, progress)
        progress("packing")
        packed = Path(name) / "bundle.zip"
        digest = pack(folder, facts, packed)
        # A megabyte for what stands in a bundle beside its evidence.
        result = verify(packed, 2 * wanted.most_mb + 1, digest, progress)
        if not result.is_same:
            raise BundleError(_refusal(wanted, result.faults))
        size = packed.stat().st_size
        packed.replace(wanted.file)
    return Made(digest, size)


def _refusal(wanted: Wanted, faults: tuple[str, ...]) -> str:
    told = f"the bundle does not say what the run says, and was not written: {faults[0]} ({len(faults)} differences)"
    return told if wanted.has_contents else f"{told}; without --without-contents it may"
