"""A cell and a replay as they might be found."""

from __future__ import annotations

from tools.faults.matrix import MOMENTS, Cell
from tools.faults.replays import APPROVE, Replayed

CELL = Cell(
    moment=MOMENTS[1],
    victim="driver",
    was_hit=True,
    store_after_kill="as before",
    acts=0,
    seconds=12.3,
    verdict="BROKEN",
    are_rows_equal=True,
    lost=0,
    doubled=0,
    repeated=1,
    also_told=2,
    run_at="2026-11-20 10:00",
    tried_at="2026-11-20 10:05",
)
REPLAY = Replayed(
    answer=APPROVE,
    killed="task",
    planned=8,
    rows=(0, 8, 8),
    keys=8,
    state="success",
    resolved=8,
    verdict="KEPT",
    is_sound=True,
    run_at="2026-11-20 10:00",
    tried_at="2026-11-20 10:09",
)
