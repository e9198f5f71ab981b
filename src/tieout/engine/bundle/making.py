"""Makes the bundle of a run: written, packed, verified, and only then moved into place."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tieout.contracts import Contract
from tieout.engine.bundle.packing import BundleRequest, pack
from tieout.engine.bundle.parts import write_parts
from tieout.engine.bundle.verifying import verify
from tieout.engine.reconciling import Reconciliation
from tieout.errors import BundleError
from tieout.folders import full_device_named


@dataclass(frozen=True)
class Made:
    """A new bundle: its digest, to be kept elsewhere, and the size of its file in bytes."""

    digest: str
    size: int


def make_bundle(
    run: Reconciliation, contract: Contract, request: BundleRequest, progress: Callable[[str], None]
) -> Made:
    """Write the bundle of a run, verify it, and replace the file that was there.

    Raises:
        BundleError: where it would be too large, contents cannot be left out, or it differs from the run; an earlier
            file is untouched.
        DiskFullError: where its folder has no space left; the same.
        OSError: where its folder cannot be written otherwise.
    """
    parent = request.file.parent
    with full_device_named(parent), tempfile.TemporaryDirectory(prefix=".tieout-", dir=parent) as name:
        folder = Path(name) / "parts"
        folder.mkdir()
        facts = write_parts(run, contract, folder, request, progress)
        progress("packing")
        packed = Path(name) / "bundle.zip"
        digest = pack(folder, facts, packed)
        # One megabyte for the parts of a bundle other than evidence.
        result = verify(packed, 2 * request.max_mb + 1, digest, progress)
        if not result.is_same:
            raise BundleError(_refusal(request, result.faults))
        size = packed.stat().st_size
        packed.replace(request.file)
    return Made(digest, size)


def _refusal(request: BundleRequest, faults: tuple[str, ...]) -> str:
    refusal = f"the bundle does not say what the run says, and was not written: {faults[0]} ({len(faults)} differences)"
    return refusal if request.has_contents else f"{refusal}; without --without-contents it may"
