"""Kafka's published jars, and its own command-line tools run from them."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.record.processes import RecordingError

SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""What spares a virtual machine of seconds or minutes work that only pays later."""


@dataclass(frozen=True)
class Jars:
    """The folder filled by `mvn dependency:copy-dependencies`; see pom.xml."""

    folder: Path

    def java(self, main_class: str, *arguments: str, memory: str = "256m", logging: str = "OFF") -> list[str]:
        """Return the command that runs a class of the jars; its log would be mixed into its output."""
        options = [f"-Xmx{memory}", f"-Dlog4j2.level={logging}", "-cp", f"{self.folder}/*"]
        return ["java", *SHORT_LIVED, *options, main_class, *arguments]

    def run(self, main_class: str, *arguments: str, timeout: float = 90) -> str:
        """Return the output of one of Kafka's command-line tools.

        Raises:
            RecordingError: if the tool fails; with its output.
        """
        command = self.java(main_class, *arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        if done.returncode != 0:
            raise RecordingError(f"{main_class} failed: {done.stderr[-2000:] or done.stdout[-2000:]}")
        return done.stdout
