"""The source kind of Storm's Trident: the batches that it keeps track of in ZooKeeper."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from tieout.contracts.scalars import Text
from tieout.contracts.sources.copies import Copy
from tieout.contracts.sources.files import Paths


class TridentSource(Copy):
    """The batches of a Trident stream that reads Kafka, as a ZooKeeper server has written them down.

    `path` are the folders of a server's files: `version-2` below `dataDir`, and that below `dataLogDir` where there is
    one. `root` is `transactional.zookeeper.root`. `stream` is the name that the topology gives its stream
    (`newStream`), and may be left out where there is one.
    """

    kind: Literal["trident"] = "trident"
    path: Paths
    root: Text = "/transactional"
    stream: Text | None = None

    @field_validator("root")
    @classmethod
    def _is_node(cls, value: str) -> str:
        """Refuse a path that is not below ZooKeeper's root."""
        if not value.startswith("/") or not value.strip("/"):
            raise ValueError(f"expected a path in ZooKeeper such as /transactional, found {value}")
        return value.rstrip("/")
