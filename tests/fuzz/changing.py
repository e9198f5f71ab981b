"""What fuzzing does to bytes and lines: flips, cuts, copies, and numbers and words that programs stumble over."""

from __future__ import annotations

import os
from random import Random
from typing import Final

CASES: Final = int(os.environ.get("TIEOUT_FUZZ_CASES", "60"))
"""How many cases a parser gets; contracts get ten times as many, runs of the engine a twentieth."""
SECONDS: Final = 5.0
"""Of processor time: a busy machine is no fault of what is tried."""
EXTREMES: Final = (
    *(0, 1, -1, 127, 128, 2**31 - 1, -(2**31), 2**31),
    *(2**62, 2**63 - 1, -(2**63), 2**64, 10**19, 10**30),
)
_MOST_BYTES: Final = 400


def changed_bytes(content: bytes, chance: Random) -> bytes:
    """The content with some bytes flipped, cut, doubled, or other numbers in their place."""
    changed = bytearray(content)
    for _ in range(chance.randint(1, 6)):
        place = chance.randrange(len(changed) + 1)
        size = chance.choice((1, 2, 4, 8))
        match chance.randrange(5):
            case 0:
                changed[place : place + 1] = bytes([chance.randrange(256)])
            case 1:
                number = chance.choice(EXTREMES) & (256**size - 1)
                changed[place : place + size] = number.to_bytes(size, "big")
            case 2:
                del changed[place : place + chance.randrange(1, 40)]
            case 3:
                changed[place:place] = changed[place : place + chance.randrange(1, 200)]
            case _:
                changed[place:place] = bytes([chance.choice((0, 0x80, 0xFF))]) * chance.randrange(
                    1, _MOST_BYTES
                )
    return bytes(changed)


def changed_lines(text: str, chance: Random, words: tuple[str, ...]) -> str:
    """The text with some lines gone, twice, elsewhere or joined, and words in the place of values."""
    lines = text.splitlines(keepends=True)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(lines))
        line = lines[place]
        match chance.randrange(5):
            case 0:
                lines[place] = ""
            case 1:
                lines[place] = line * chance.randint(2, 3)
            case 2:
                other = chance.randrange(len(lines))
                lines[place], lines[other] = lines[other], line
            case 3:
                name, colon, _ = line.partition(":")
                lines[place] = f"{name}{colon} {chance.choice(words)}\n"
            case _:
                at = chance.randrange(len(line) + 1)
                lines[place] = f"{line[:at]}{chance.choice(words)}{line[at:]}"
    return "".join(lines)
