"""`python -m tieout.warehouse`: the process that copies a part of a table for another one."""

from __future__ import annotations

import sys

from tieout.warehouse.copying import main

if __name__ == "__main__":
    sys.exit(main())
