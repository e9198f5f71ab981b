"""Paths on the command line."""

from __future__ import annotations

import argparse
from pathlib import Path


def path(text: str) -> Path:
    """Return the path that the text names; an empty text, as of a variable that is not set, names none.

    Python takes it for the working directory, which would then be checked, or written to, instead of what was meant.

    Raises:
        argparse.ArgumentTypeError: where the text is empty.

    >>> path("dags/contracts").name
    'contracts'
    """
    if not text:
        raise argparse.ArgumentTypeError("expected a path, found an empty text; the working directory is .")
    return Path(text)
