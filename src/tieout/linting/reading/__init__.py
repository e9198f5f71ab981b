"""Reads settings from configuration files of other programs: their formats, wrappers and names.

Possible secrets are left out. Errors name file and line and never repeat the content.
"""

from __future__ import annotations

from tieout.linting.reading.places import Place
from tieout.linting.reading.settings_file import Reading, read_settings

__all__ = ["Place", "Reading", "read_settings"]
