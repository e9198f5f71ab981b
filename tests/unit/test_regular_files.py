"""Pipes and devices in the place of files: contracts, settings, suites and a broker's own files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tieout.contracts import load_contracts
from tieout.engine.kafka.pieces import Piece
from tieout.regular_files import opened_file, read_bytes


@pytest.mark.parametrize("path", ["/dev/zero", "/dev", "pipe"])
def test_what_is_no_file_is_not_opened(tmp_path: Path, path: str) -> None:
    """It is named; a file is opened and read."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"x")

    with pytest.raises(OSError, match=r"expected a file, found a (named pipe|device|folder)"):
        opened_file(tmp_path / path)

    assert read_bytes(tmp_path / "file") == b"x"


def test_a_pipe_among_contracts_is_one_error(tmp_path: Path) -> None:
    """The other contracts' DAGs stay."""
    os.mkfifo(tmp_path / "a.yml")

    contracts, errors = load_contracts(tmp_path)

    assert contracts == ()
    assert [error.reason for error in errors] == ["cannot be read: expected a file, found a named pipe"]


def test_a_segment_that_is_a_pipe_is_not_read(tmp_path: Path) -> None:
    """Readers of segments take an OSError for a fault of the file."""
    os.mkfifo(tmp_path / "0.log")

    piece = Piece(str(tmp_path / "0.log"), "segment", "t", 0, 10, is_placed=True)

    with pytest.raises(OSError, match="found a named pipe"), piece.entries():
        pass
