"""The commands that make an audit bundle, and verify one. Docs: docs/how-to/keep-an-audit-bundle.md."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tieout.cli.exit_codes import ExitCode
from tieout.cli.paths import path
from tieout.engine.bundle.packing import DEFAULT_MB, BundleRequest
from tieout.errors import UsageError
from tieout.reporting.alerts import printable

if TYPE_CHECKING:
    from tieout.cli.commands import Surroundings
    from tieout.cli.engine import Bundled
    from tieout.engine.bundle.verifying import Verification


def requested_bundle(arguments: argparse.Namespace, file: Path) -> BundleRequest:
    """Return the bundle request of the arguments.

    Raises:
        UsageError: where its file cannot be written.
    """
    file = file.absolute()
    if file.suffix != ".zip" or file.is_dir():
        raise UsageError(f"{file}: expected the name of a file that ends in .zip")
    if not os.access(file.parent, os.W_OK | os.X_OK):
        raise UsageError(f"{file}: {file.parent} is not a folder that can be written to")
    return BundleRequest(file, arguments.max_mb, not arguments.without_contents)


def bundle_report(bundled: Bundled, request: BundleRequest, *, is_json: bool) -> str:
    """Return the summary that is printed for a written bundle, as text or JSON."""
    statement = bundled.statement
    if is_json:
        facts = {"file": str(request.file), "digest": bundled.digest, "bytes": bundled.size}
        facts |= {name: statement[name] for name in ("pipeline", "window", "run_id", "verdict")}
        return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    window = statement["window"]
    return (
        f"{request.file}: {statement['verdict']} {printable(statement['pipeline'])}, "
        f"{window['start']} to {window['end']}, {statement['breaks_total']} breaks; {bundled.size} bytes\n"
        f"digest: {bundled.digest}\n"
    )


def verify(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Judge a bundle's evidence again and print whether the statement is the same, or where it differs."""
    from tieout.engine.bundle.verifying import verify as verified  # noqa: PLC0415 - brings DuckDB

    try:
        verification = verified(arguments.bundle, arguments.max_mb, arguments.digest, around.progress)
    except OSError as error:
        raise UsageError(f"{arguments.bundle}: cannot be read: {error.strerror or error}") from error
    text = (
        _json(verification)
        if arguments.json
        else "".join(f"{printable(line)}\n" for line in _lines(verification))
    )
    around.out.write(text)
    return ExitCode.KEPT if verification.is_same else ExitCode.BROKEN


def _lines(verification: Verification) -> Iterator[str]:
    manifest = verification.manifest
    yield (
        f"{manifest.verdict} {manifest.pipeline}, {manifest.window.start} to {manifest.window.end}, "
        f"run {manifest.run_id}"
    )
    yield f"digest: {verification.digest}"
    yield from verification.notes
    for part in verification.parts:
        yield f"{part.name:<10} {part.compared} compared, {part.same} same"
    yield from (f"differs: {fault}" for fault in verification.faults)
    yield "same" if verification.is_same else "DIFFERENT"


def _json(verification: Verification) -> str:
    facts = {
        "is_same": verification.is_same,
        "digest": verification.digest,
        "manifest": verification.manifest.model_dump(mode="json"),
        "compared": [asdict(part) for part in verification.parts],
        "differences": verification.faults,
        "notes": verification.notes,
    }
    return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"


def _megabytes(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number of megabytes from 1 on, found {text!r}")
    return int(text)


def _digest(text: str) -> str:
    if len(text) != _DIGITS or set(text.lower()) - set("0123456789abcdef"):
        raise argparse.ArgumentTypeError(
            f"expected the {_DIGITS} hexadecimal digits of a SHA-256, found {text!r}"
        )
    return text


_DIGITS: Final = 64


def add_bundle_options(command: argparse.ArgumentParser) -> None:
    """Add the options for writing a bundle."""
    command.add_argument(
        "--without-contents",
        action="store_true",
        help="replace the hashes of keys, payloads and headers in the bundle, so that no content can be guessed",
    )
    _add_limit(command, "evidence the bundle may hold")


def _add_limit(command: argparse.ArgumentParser, contents: str) -> None:
    command.add_argument(
        "--max-mb",
        metavar="N",
        type=_megabytes,
        default=DEFAULT_MB,
        help=f"megabytes of {contents}, uncompressed (default: {DEFAULT_MB})",
    )


def _add_verify(command: argparse.ArgumentParser) -> None:
    command.add_argument("bundle", metavar="FILE.zip", type=path, help="the bundle")
    command.add_argument(
        "--digest",
        metavar="SHA256",
        type=_digest,
        help="the digest that was printed when the bundle was made",
    )
    _add_limit(command, "files the bundle may unpack to")
    command.add_argument("--json", action="store_true", help="print the result as JSON instead of text")


BUNDLE_ARGUMENTS: Final[dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]]] = {
    "verify": (
        "Judge the evidence of an audit bundle again, and say whether its statement is the same.",
        _add_verify,
    )
}
