"""Reading the settings of others' configuration files: their formats, wrappers and names.

What looks like a secret is left out. Errors name file and line and never repeat what stands there.
"""

from __future__ import annotations

from tieout.linting.reading.places import Place
from tieout.linting.reading.settings_file import Reading, read_settings

__all__ = ["Place", "Reading", "read_settings"]
