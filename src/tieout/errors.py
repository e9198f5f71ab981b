"""The errors a user of Tieout can meet; each says what was expected, what was found, where and what to do."""

from __future__ import annotations

from typing import ClassVar


class TieoutError(Exception):
    """Something Tieout was asked to do cannot be done."""

    is_temporary: ClassVar[bool] = False
    """Whether trying again later may help."""

    def __str__(self) -> str:
        """Return the message given, or the class docstring's first line where none was given."""
        text = super().__str__()
        return text or (self.__doc__ or "").strip().splitlines()[0]


class InstallationError(TieoutError):
    """A file that comes along with Tieout is missing."""


class UsageError(TieoutError):
    """The command's arguments do not make sense together."""


class ContractError(TieoutError):
    """The contract file cannot be used."""

    def __init__(self, file: str, line: int | None, reason: str) -> None:
        super().__init__(file, line, reason)
        self.file = file
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        """Return `file:line: reason`, the form that editors and terminals turn into a link."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.reason}"


class DiskFullError(TieoutError):
    """A device has no space left."""

    is_temporary = True


class ExecutorLostError(TieoutError):
    """An executor of Spark ended while it was needed."""

    is_temporary = True


class JavaMemoryError(TieoutError):
    """Spark's Java machine has not enough memory for what it reads."""


class BundleError(TieoutError):
    """An audit bundle cannot be made as asked, or what was given is none."""


class JudgingError(TieoutError):
    """Executors cannot judge what they were given: they lack memory, or a package."""


class SettingsFileError(TieoutError):
    """A file of settings that the contract names cannot be used."""


class SourceError(TieoutError):
    """A ledger's source cannot be read as the contract describes it."""


class SourceUnreachableError(SourceError):
    """A ledger's source does not answer now, and may later."""

    is_temporary = True


class UnreadableTimeError(SourceError):
    """A record of a topic has a time that Spark's Kafka connector cannot read."""


class ConnectionNotFoundError(TieoutError):
    """The contract names a connection that is not defined."""


class StoreError(TieoutError):
    """The result store refused or lost an operation."""

    is_temporary = True


class PublishInProgressError(StoreError):
    """Another run is publishing the same pipeline and window."""


class SuiteError(TieoutError):
    """An expectation suite cannot be used."""
