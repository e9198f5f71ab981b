"""Which program, in which versions, a contract's `client` names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tieout.linting.defaults import CLIENTS, OLDEST, OTHER_NAMES, RELEASED
from tieout.linting.pipeline import Trouble
from tieout.linting.versions import Versions, split_client

CLIENT: Final = "client"

_OF_CLIENTS: Final = ("producer", "consumer")
_SOFTWARE: Final = {"broker": "kafka"}


def software_of(section: str, client: str) -> tuple[tuple[str, ...], Versions, Trouble | None]:
    """Return whose defaults apply in which versions; of any known client where the contract names none."""
    own = CLIENTS if section in _OF_CLIENTS else (_SOFTWARE.get(section, section),)
    if not client:
        return own, Versions.since(OLDEST.get(own[0], "")), None
    found = split_client(client)
    name = OTHER_NAMES.get(found[0], found[0]) if found else ""
    if found and name in own:
        is_said = bool(found[1].text) and _is_released(name, found[1])
        return (name,), found[1] if is_said else Versions.since(OLDEST.get(name, "")), None
    failure = "the program's defaults are not known, so those of all known ones are taken as possible"
    advice = f"write one of {', '.join(own)}, and its version: {own[0]}-4.0"
    return own, Versions(), Trouble("client_unknown", section, CLIENT, client, failure, advice)


def _is_released(name: str, versions: Versions) -> bool:
    return name not in RELEASED or versions.is_among(RELEASED[name])


def no_version(section: str, client: str) -> Iterator[Trouble]:
    """Yield a trouble where the client is a program's that is known, in a version that there is not."""
    found = split_client(client)
    name = OTHER_NAMES.get(found[0], found[0]) if found else ""
    if found and found[1].text and not _is_released(name, found[1]):
        failure = (
            f"no version {found[1].text} of {name} is known, so all of its versions are taken as possible; "
            "a client's version is that of the library, not of the language"
        )
        advice = f"the version of the library: {name}-{max(RELEASED[name])}.0"
        yield Trouble("client_unknown", section, CLIENT, client, failure, advice)
