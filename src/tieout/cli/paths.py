"""Paths on the command line."""

from __future__ import annotations

import argparse
from pathlib import Path


def path(text: str) -> Path:
    """Return the path of a text; an empty text, as from an unset variable, is an error.

    Python would take it for the working directory, and read or write there.

    Raises:
        argparse.ArgumentTypeError: if the text is empty.

    >>> path("dags/contracts").name
    'contracts'
    """
    if not text:
        raise argparse.ArgumentTypeError("expected a path, found an empty text; the working directory is .")
    return Path(text)
