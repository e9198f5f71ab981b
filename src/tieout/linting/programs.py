"""The program and versions that a contract's `client` names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tieout.linting.defaults import CLIENT_ALIASES, CLIENTS, OLDEST, RELEASED
from tieout.linting.pipeline import Trouble
from tieout.linting.versions import Versions, split_client

CLIENT: Final = "client"

_CLIENT_SECTIONS: Final = ("producer", "consumer")
_SOFTWARE: Final = {"broker": "kafka"}


def software_of(section: str, client: str) -> tuple[tuple[str, ...], Versions, Trouble | None]:
    """Return the programs and versions whose defaults apply; all known clients if the contract names none."""
    programs = CLIENTS if section in _CLIENT_SECTIONS else (_SOFTWARE.get(section, section),)
    if not client:
        return programs, Versions.since(OLDEST.get(programs[0], "")), None
    name_and_versions = split_client(client)
    name = CLIENT_ALIASES.get(name_and_versions[0], name_and_versions[0]) if name_and_versions else ""
    if name_and_versions and name in programs:
        is_declared = bool(name_and_versions[1].text) and _is_released(name, name_and_versions[1])
        return (name,), name_and_versions[1] if is_declared else Versions.since(OLDEST.get(name, "")), None
    failure = "the program's defaults are not known, so those of all known ones are taken as possible"
    advice = f"write one of {', '.join(programs)}, and its version: {programs[0]}-4.0"
    return programs, Versions(), Trouble("client_unknown", section, CLIENT, client, failure, advice)


def _is_released(name: str, versions: Versions) -> bool:
    return name not in RELEASED or versions.is_among(RELEASED[name])


def unreleased_version(section: str, client: str) -> Iterator[Trouble]:
    """Yield a trouble if the client is known, but its version was never released."""
    name_and_versions = split_client(client)
    name = CLIENT_ALIASES.get(name_and_versions[0], name_and_versions[0]) if name_and_versions else ""
    if name_and_versions and name_and_versions[1].text and not _is_released(name, name_and_versions[1]):
        failure = (
            f"no version {name_and_versions[1].text} of {name} is known, so all of its versions are taken as possible; "
            "a client's version is that of the library, not of the language"
        )
        advice = f"the version of the library: {name}-{max(RELEASED[name])}.0"
        yield Trouble("client_unknown", section, CLIENT, client, failure, advice)
