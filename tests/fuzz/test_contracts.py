"""Contract files that nobody wrote on purpose: each is a contract or a named error of its file, and soon."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random
from typing import Final

from tests.fuzz.changing import CASES, SECONDS, changed_bytes, changed_lines

from tieout.contracts import load_contract
from tieout.errors import TieoutError

_CONTRACTS: Final = [
    path.read_text() for path in sorted((Path(__file__).parents[2] / "examples").glob("*/contract*.yml"))
]
_WORDS: Final = (
    *("", "~", "null", "[]", "{}", "-", "yes", "NaN", ".inf", "-0", "0x7f", "1e400", "2026-13-45", "9" * 400),
    *("[" * 60, "{a: " * 60, "&a [*a]", "*nobody", "!!python/object:os.system x", "!!binary x", "<<: *a"),
    *("|", ">-", "'", '"', "%", "\t", "\x07", "٣", "../../etc/passwd", "1s", "99999999999d", "-1h"),
    *("reflect('java.lang.System', 'exit')", "(SELECT 1)", "max(", "rand()", "uuid()", "`", "a.*", "\\"),
)


def test_a_contract_takes_anything(tmp_path: Path) -> None:
    """Lines that are gone, doubled, moved and overwritten, and bytes that are no text."""
    path, tried, reasons = tmp_path / "contract.yml", 10 * CASES, []
    for seed in range(tried):
        chance = Random(seed)  # noqa: S311 - repeatable, not secret
        text = changed_lines(chance.choice(_CONTRACTS), chance, _WORDS)
        content = text.encode()
        path.write_bytes(changed_bytes(content, chance) if chance.random() < 1 / 4 else content)
        began = time.process_time()
        try:
            load_contract(path)
        except TieoutError as error:
            reasons.append(str(error))
        except Exception as error:
            raise AssertionError(f"case {seed}: {type(error).__name__}: {error}") from error
        assert time.process_time() - began < SECONDS, seed

    assert tried / 4 < len(reasons) < tried
    assert all(reasons)
