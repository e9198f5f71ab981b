"""The source kinds of Pulsar: a topic's entries and a subscription's cursor, as a broker's REST interface says."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, model_validator

from tieout.contracts.scalars import ConnectionName, Text
from tieout.contracts.sources.copies import Copy

_SCHEME: Final = "persistent://"
_NOT_KEPT: Final = "non-persistent://"
_DEFAULTS: Final = "public/default/"
_PARTS: Final = re.compile(r"[^/\s]+(?:/[^/\s]+){2}|[^/\s]+")


def _topic(name: str) -> str:
    if name.startswith(_NOT_KEPT):
        raise ValueError("expected a persistent topic, found one of which the broker keeps nothing")
    if _PARTS.fullmatch(name.removeprefix(_SCHEME)) is None:
        raise ValueError(
            f"expected a topic such as orders, public/default/orders or {_SCHEME}public/default/orders, "
            f"found {name!r}"
        )
    return name


PulsarTopic = Annotated[Text, AfterValidator(_topic)]


class _PulsarAnswers(Copy):
    """What a broker answers about a topic, asked over a connection, or kept in files below a path."""

    connection: ConnectionName | None = None
    path: Text | None = None
    topic: PulsarTopic

    @property
    def topic_path(self) -> str:
        """The topic as the REST interface names it: tenant, namespace and topic.

        >>> PulsarSource(connection="pulsar", topic="orders").topic_path
        'public/default/orders'
        """
        name = self.topic.removeprefix(_SCHEME)
        return name if "/" in name else f"{_DEFAULTS}{name}"

    @property
    def spellings(self) -> tuple[str, ...]:
        """All names of the topic: with and without its scheme, and short where tenant and namespace are the defaults.

        >>> PulsarSource(connection="pulsar", topic="orders").spellings
        ('public/default/orders', 'persistent://public/default/orders', 'orders', 'persistent://orders')
        """
        path = self.topic_path
        short = path.removeprefix(_DEFAULTS)
        names = (path,) if short == path else (path, short)
        return tuple(scheme + name for name in names for scheme in ("", _SCHEME))

    @model_validator(mode="after")
    def _has_one_of_connection_and_path(self) -> Self:
        if (self.connection is None) == (self.path is None):
            found = "neither" if self.path is None else "both"
            raise ValueError(f"expected either connection or path, found {found}")
        if self.connection is not None and self.taken_at is not None:
            raise ValueError("taken_at: expected none with a connection, which is asked when the run begins")
        return self


class PulsarSource(_PulsarAnswers):
    """A topic's entries, with the messages in them and the states of their transactions.

    `path` is a folder of answers, each with its head, under the paths that they were asked at below `/admin/v2`.
    """

    kind: Literal["pulsar"] = "pulsar"


class PulsarCursorSource(_PulsarAnswers):
    """Which of a topic's messages a subscription has acknowledged."""

    kind: Literal["pulsar_cursor"] = "pulsar_cursor"
    subscription: Text
