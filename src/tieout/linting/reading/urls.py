"""Settings in the address of an ActiveMQ broker: `tcp://a:61616?jms.useAsyncSend=true&broker.persistent=false`.

`jms.` begins those of a client's connections, `broker.` those of a broker that runs within the client. Docs: Apache
ActiveMQ Classic, Connection Configuration URI, and VM Transport Reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from tieout.linting.reading.entries import Entry

_ADDRESS: Final = re.compile(
    r"(?P<address>[a-z][a-z0-9+]*:[^?()]*(?:\(.*\)[^?()]*)?|\$\{[^{}]*\}[^?()]*)\?(?P<options>[^?(){}\s]+)"
)
_OPTION: Final = re.compile(r"(?P<prefix>jms|broker)\.(?P<name>[A-Za-z]\w*)=(?P<value>.*)")
_ENDS: Final = (("broker", "url"), ("url",), ("uri",), ("address",))


def with_options(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield the entries, and after an address the settings that it gives, beside it; the address is left without them.

    >>> entry = Entry(("a", "broker-url"), 0, "failover:(tcp://b,tcp://c)?jms.useAsyncSend=true&d=1", "a.broker-url")
    >>> [(each.segments, each.value) for each in with_options([entry])]
    [(('a', 'broker-url'), 'failover:(tcp://b,tcp://c)?d=1'), (('a', 'useAsyncSend'), 'true')]
    """
    for entry in entries:
        address = _ADDRESS.fullmatch(entry.value)
        parts = address["options"].split("&") if address else []
        found = [option for option in map(_OPTION.fullmatch, parts) if option]
        if address is None or not found:
            yield entry
            continue
        rest = "&".join(part for part in parts if not _OPTION.fullmatch(part))
        yield replace(entry, value=f"{address['address']}?{rest}".rstrip("?"))
        above = _above(entry.segments)
        for option in found:
            yield replace(
                entry,
                segments=(*above, option["name"]),
                leaf=min(entry.leaf, len(above)),
                value=option["value"],
                written=f"{entry.written}?{option['prefix']}.{option['name']}",
            )


def _above(segments: tuple[str, ...]) -> tuple[str, ...]:
    """Return the segments without those of the address's own name, several in a variable's.

    >>> _above(("spring", "activemq", "broker", "url")), _above(("brokerURL",))
    (('spring', 'activemq'), ())
    """
    ends = (end for end in _ENDS if tuple(segments[-len(end) :]) == end)
    return segments[: -len(next(ends, ("",)))]
