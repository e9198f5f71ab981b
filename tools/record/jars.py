"""Kafka's published jars, and its own command-line tools run from them."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.record.processes import RecordingError


@dataclass(frozen=True)
class Jars:
    """The folder that `mvn dependency:copy-dependencies` filled; see pom.xml."""

    folder: Path

    def java(self, main_class: str, *arguments: str, memory: str = "256m", logging: str = "OFF") -> list[str]:
        """Return the command that runs a class of theirs; what it logs would be mixed into what it prints."""
        options = [f"-Xmx{memory}", f"-Dlog4j2.level={logging}", "-cp", f"{self.folder}/*"]
        return ["java", *options, main_class, *arguments]

    def run(self, main_class: str, *arguments: str, patience: float = 90) -> str:
        """Return what one of Kafka's command-line tools prints.

        Raises:
            RecordingError: where the tool fails; with what it said.
        """
        command = self.java(main_class, *arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience, check=False)
        if done.returncode != 0:
            raise RecordingError(f"{main_class} failed: {done.stderr[-2000:] or done.stdout[-2000:]}")
        return done.stdout
