"""The base of all source kinds that read a copy of another system's files."""

from __future__ import annotations

from datetime import datetime

from tieout.contracts.scalars import Model, Moment


class Copy(Model):
    """Evidence that somebody took out of another system, at a time that only they know.

    `taken_at` is `now` where the files are the system's own and still written to, else the time of the copy. It is when
    the evidence was observed, and until when it is complete; without it the evidence says neither.
    """

    taken_at: Moment | None = None

    def taken_time(self, now: datetime) -> datetime | None:
        """Return the time of the evidence, with `now` as the time of reading; None if `taken_at` is not given."""
        return now if self.taken_at == "now" else self.taken_at

    @property
    def has_own_times(self) -> bool:
        """Whether the files are the system's own, so that their modification times are those of its writes."""
        return self.taken_at == "now"
