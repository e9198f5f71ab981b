"""Engines: the jars that `make engines` fetched, and the project's own small applications, compiled and run on them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tools.record.jars import SHORT_LIVED
from tools.record.processes import RecordingError, end

ROOT = Path(__file__).resolve().parents[3]
ENGINES = ROOT / ".tieout" / "engines"
_JVM = (*SHORT_LIVED, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


@dataclass(frozen=True)
class Application:
    """A running application of an engine."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        """End the process as a failing machine would: no chance to commit, close or flush.

        Raises:
            RecordingError: where it had ended by itself, with what it said.
        """
        if self.process.poll() is not None:
            raise RecordingError(
                f"{self.name} had ended before it was killed:\n{self.log.read_text()[-2000:]}"
            )
        self.process.kill()
        self.process.wait(20)

    def stop(self) -> None:
        """Ask the application to end, and wait until it has."""
        end(self.process)

    def wait(self, code: int = 0, patience: float = 120) -> None:
        """Wait until the process ends by itself.

        Raises:
            RecordingError: where it ends with another code, with what it said.
        """
        found = self.process.wait(patience)
        if found != code:
            raise RecordingError(
                f"{self.name}: expected exit {code}, found {found}:\n{self.log.read_text()[-2000:]}"
            )


@dataclass(frozen=True)
class Engine:
    """The class path of one system, the project's own classes among it, and what its virtual machine is given."""

    class_path: str
    memory: str = "256m"
    options: Sequence[str] = ()

    def start(
        self, main_class: str, settings: Mapping[str, object], folder: Path, name: str, stack: ExitStack
    ) -> Application:
        """Start a class with the settings in a file, its one argument; the stack kills the process."""
        folder.mkdir(parents=True, exist_ok=True)
        file, log = folder / f"{name}.properties", folder / f"{name}.log"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command = [
            "java",
            f"-Xmx{self.memory}",
            *_JVM,
            *self.options,
            "-cp",
            self.class_path,
            main_class,
            str(file),
        ]
        with log.open("w") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=folder)
        stack.callback(_end, process)
        return Application(name, process, log)


def class_path_of(system: str, folder: Path, jars: Sequence[Path] = (), common: Sequence[str] = ()) -> str:
    """Compile the system's own Java into the folder, and return the class path to run it with.

    Args:
        system: a folder in `requirements/engines`, in `.tieout/engines` and in `java` beside this module.
        folder: where the classes are put.
        jars: folders of jars beside those that were fetched.
        common: the names of the sources in `java/common` that are compiled with them.

    Raises:
        RecordingError: where they were not fetched, or the compiler refuses the sources.
    """
    fetched = ENGINES / system
    if not (fetched / ".fetched").exists():
        raise RecordingError(f"the jars of {system} are not in {fetched}: run `make engines`")
    libraries = ":".join(f"{place}/*" for place in (fetched, *jars))
    java = Path(__file__).parent / "java"
    sources = [str(path) for path in sorted((java / system).glob("*.java"))]
    sources += [str(java / "common" / f"{name}.java") for name in common]
    command = [
        "javac",
        *(f"-J{option}" for option in SHORT_LIVED),
        "-nowarn",
        "-proc:none",
        "-cp",
        libraries,
        "-d",
        str(folder),
        *sources,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RecordingError(f"javac failed:\n{done.stderr[-2000:]}")
    return f"{folder}:{libraries}"


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait(20)
