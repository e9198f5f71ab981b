"""How the driver and its clients talk: one JSON line each way, so that a scenario decides every single step."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Command = Callable[..., Any]


def configuration() -> dict[str, Any]:
    """Return the configuration in the JSON file that the first argument names."""
    loaded: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    return loaded


def obey(commands: Mapping[str, Command]) -> None:
    """Carry out the commands on standard input, one after the other, and answer each; end with the input."""
    for line in sys.stdin:
        request = json.loads(line)
        answer = commands[request.pop("command")](**request)
        print(json.dumps(answer), flush=True)
