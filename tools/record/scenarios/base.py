"""What every scenario offers to the recorder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from tools.record.scene import Scene
from tools.record.truth import Stage


class Scenario(ABC):
    """One example: `play` acts, the recorder takes the evidence, `stages` says what must follow from it."""

    name: ClassVar[str]
    topic: ClassVar[str]
    group: ClassVar[str]
    contracts: ClassVar[tuple[str, ...]] = ("contract.yml",)
    partitions: ClassVar[int] = 3

    def prepare(self, work: Path, stack: ExitStack) -> None:  # noqa: B027 - most scenarios need nothing
        """Start what the scenario needs beside the broker."""

    @abstractmethod
    def play(self, scene: Scene) -> None:
        """Do everything that happens within the window.

        Raises:
            RecordingError: where something did not happen as the example says it does.
        """

    def export(self, folder: Path) -> None:  # noqa: B027 - most outputs are files already
        """Write the output's rows where they are not in a file of the evidence already."""

    def play_later(self, scene: Scene, folder: Path) -> None:  # noqa: B027 - most scenarios have one stage
        """Do what happens after the first evidence was taken, and take what it adds into `folder`."""

    @abstractmethod
    def stages(self, scene: Scene) -> tuple[Stage, ...]:
        """Return what every contract's statement must say at every stage."""
