"""The interface of scenarios for the recorder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from tools.record.scene import Scene
from tools.record.truth import Stage


class Scenario(ABC):
    """One example: `play` acts, the recorder extracts the evidence, `stages` states the expected results."""

    name: ClassVar[str]
    topic: ClassVar[str]
    group: ClassVar[str]
    contracts: ClassVar[tuple[str, ...]] = ("contract.yml",)
    partitions: ClassVar[int] = 3

    def prepare(self, work: Path, stack: ExitStack) -> None:  # noqa: B027 - most scenarios need nothing
        """Start the services that the scenario needs besides the broker."""

    @abstractmethod
    def play(self, scene: Scene) -> None:
        """Perform all actions within the window.

        Raises:
            RecordingError: if something does not happen as the example describes.
        """

    def export(self, folder: Path) -> None:  # noqa: B027 - most outputs are files already
        """Write the output's rows, unless they are already in a file of the evidence."""

    def play_after_extract(self, scene: Scene, folder: Path) -> None:  # noqa: B027 - most scenarios have one stage
        """Perform the actions after the first evidence was extracted, and write the new evidence to `folder`."""

    @abstractmethod
    def stages(self, scene: Scene) -> tuple[Stage, ...]:
        """Return the expected statement of every contract at every stage."""
