"""The reference page of the linter, generated from its rules.

`python -m tieout.linting.reference > docs/reference/linter.md` writes it; a test keeps it current.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from tieout.linting.contradicting import CONTRADICTIONS
from tieout.linting.defaults import CLIENT_ALIASES, CLIENTS, DEFAULTS, OLDEST
from tieout.linting.linting import DECLARATION
from tieout.linting.pipeline import SECTIONS
from tieout.linting.reading.frameworks import FRAMEWORK_DEFAULTS
from tieout.linting.rules import RULES
from tieout.linting.rules.output import COMMITS, OUTPUT
from tieout.linting.values import CHECKED_SETTINGS

_PARTS: Final = {
    "producer": "A Kafka producer.",
    "consumer": "The Kafka consumer whose output is judged.",
    "share_group": "Members of a Kafka share group, and what the group itself is set to.",
    "broker": "Kafka's brokers and the topic, whose own settings count before the brokers'.",
    "connect": "A Kafka Connect worker.",
    "connector": "One connector in Kafka Connect; a sink where it names `topics` or `topics.regex`.",
    "streams": "A Kafka Streams application.",
    "flink": "A Flink job, in the words of its configuration and of the Kafka connector in SQL.",
    "spark": (
        "A Spark query. `sink` is `kafka`, `foreachBatch`, `foreach` or `file`; `api: dstreams` is the older API, "
        "which has none of a query's options."
    ),
    "storm": (
        "A Storm topology. `trident.state` is `transactional`, `opaque` or `non-transactional`, `trident.spout` is "
        "`transactional` or `opaque`."
    ),
    "pulsar": "Brokers, producer and consumer of Pulsar.",
    "activemq": (
        "Brokers and clients of ActiveMQ Classic. `acknowledgement` is `stomp auto`, `stomp client` or "
        "`stomp client-individual`; `auto` or `dups-ok` with `listener` or `receive`; `client`; or `transacted`."
    ),
}


def linter_page() -> str:
    """Return the page as Markdown."""
    environment = Environment(  # noqa: S701 - Markdown of our own rules, no page for a browser
        loader=PackageLoader("tieout.linting"), undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.filters["words"] = _code_list
    defaults = defaultdict(list)
    for default in DEFAULTS:
        defaults[default.software, default.setting].append(default.words)
    return environment.get_template("linter.md.j2").render(
        sections=SECTIONS,
        parts=_PARTS,
        rules=RULES,
        declaration=DECLARATION,
        defaults=defaults,
        contradictions=CONTRADICTIONS,
        clients=CLIENTS,
        others=CLIENT_ALIASES,
        oldest=OLDEST,
        commits=COMMITS,
        output=OUTPUT,
        sets=FRAMEWORK_DEFAULTS,
        values={section: dict(_values(section)) for section in SECTIONS},
    )


def _values(section: str) -> Iterator[tuple[str, str]]:
    """Yield the settings of a part that accept only certain values, with these values, by program if they differ."""
    for setting, kinds in CHECKED_SETTINGS[section].items():
        expected = {
            program: " or ".join(
                kind.expected + (f" from {kind.since}" if kind.since else "") for kind in each
            )
            for program, each in kinds.items()
            if not any(kind.is_free for kind in each)
        }
        if expected:
            yield (
                setting,
                "; ".join(f"{program}: {words}" if program else words for program, words in expected.items()),
            )


def _code_list(values: Iterable[str]) -> str:
    return ", ".join(f"`{value}`" for value in values)


if __name__ == "__main__":
    sys.stdout.write(linter_page())
