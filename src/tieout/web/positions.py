"""The form of a pipeline's positions, by the contract of its latest run."""

from __future__ import annotations

from tieout.contracts import stored_position_form
from tieout.store.reader import Reader


def form_of(reader: Reader, pipeline: str) -> str | None:
    """Return the form of the pipeline's positions, None where they are plain numbers or nothing was judged yet."""
    heads = reader.heads([pipeline])
    run = reader.run(heads[0].run_id) if heads else None
    return None if run is None else stored_position_form(run.contract)
