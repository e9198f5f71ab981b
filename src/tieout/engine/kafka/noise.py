"""Recognises lines that shells, Java, its loggers and containers write into a tool's output; they prove nothing.

Only certain cases: warnings and information, prompts, the command. An error is not noise: the tool may have ended
with it.
"""

from __future__ import annotations

import re
from typing import Final

_NOISE: Final = re.compile(
    r"""^\s*(?:
      SLF4J[:(]|log4j:|Picked\ up\ \w*OPTIONS:|(?:OpenJDK|Java\ HotSpot)\b.*\bwarning:|(?:WARNING|WARN|Warning|Note):\s|
      \[?\d{4}-\d\d-\d\d[T\ ]\d\d:\d\d:\d\d[.,]?\d*Z?\]?\s+\[?(?:TRACE|DEBUG|INFO|WARN)\b|
      time="[^"]*"\ level=(?:info|warning)\b|WARN\[\d+\]|Connection\ to\ \S+\ closed\.|
      Default(?:ed|ing)\ container\b|Unable\ to\ use\ a\ TTY\b|If\ you\ don't\ see\ a\ command\ prompt|
      (?:\[[^\]]*\]|[\w.-]+@[\w.-]+:?\S*(?:\ \S+)?|[\w./~-]*)?\s*[$\#%]\s
        .*(?:kafka-|rpk\b|docker\b|kubectl\b|cat\b|exit\b)|
      (?:PS\ )?[A-Za-z]:\\[^<>|]*>|
      \S*(?:kafka-dump-log|kafka-run-class|kafka-console-consumer|kafka-verifiable)\S*\s+-|
      (?:\[?[\w.-]+@[\w.-]+[:\ ][^\]\s]*\]?|(?:ba|z)?sh-[\d.]+|/)?\s*[$\#%]\s*$|```\w*\s*$|\^C\s*$|(?:exit|logout)\s*$
    )""",
    re.VERBOSE,
)


_CUTTING: Final = re.compile(r"\|\s*(?:head|tail|e?grep|sed|awk|less|more)\b|--(?:max-messages|max-bytes)\b")
"""Commands that drop lines of the output: evidence that lines are missing."""


_LONGEST: Final = 1024
"""No prompt is longer; matching longer lines would be slow."""


def is_noise(line: str) -> bool:
    """Return whether the line is noise.

    >>> is_noise("SLF4J: Class path contains multiple SLF4J bindings."), is_noise("[2026-11-20 10:00:00,1] ERROR x")
    (True, False)
    """
    return _is_like_noise(line) and not is_cutting(line)


def is_cutting(line: str) -> bool:
    """Return whether the line is a command that leaves out lines of the output.

    >>> is_cutting("$ kafka-dump-log --files 0.log | head"), is_cutting("$ kafka-dump-log --files 0.log | tee dump.txt")
    (True, False)
    """
    return _is_like_noise(line) and _CUTTING.search(line) is not None


def _is_like_noise(line: str) -> bool:
    return len(line) <= _LONGEST and _NOISE.match(line) is not None
