"""What to do about an incident: by its cause where that is proved, else by its class.

The texts are in `repairs.yml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, cast

import yaml


def repair_for(class_name: str, cause: str | None) -> str | None:
    """Return what to do about an incident, or None where there is no general advice.

    >>> repair_for("LOST", "unknown")[:6], repair_for("TORN_TRANSACTION", None)
    ('Replay', None)
    """
    return repairs()["causes"].get(cause or "") or repairs()["classes"].get(class_name)


@cache
def repairs() -> Mapping[str, Mapping[str, str]]:
    """Return the texts of `repairs.yml`, by cause and by class."""
    text = files("tieout.web").joinpath("repairs.yml").read_text("utf-8")
    return cast("dict[str, Any]", yaml.safe_load(text))
