"""Which settings are secrets, in either client's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SECRETS: Final = (
    "sasl.jaas.config",
    "sasl.password",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.key",
    "ssl.keystore.password",
)


def without_secrets(text: str, settings: Mapping[str, str]) -> str:
    """Return what a client or a broker said with every secret of the settings blotted out."""
    for name in _SECRETS:
        if settings.get(name):
            text = text.replace(settings[name], "***")
    return text
