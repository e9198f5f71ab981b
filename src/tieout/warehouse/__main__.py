"""`python -m tieout.warehouse`: copies a part of a table for the parent process."""

from __future__ import annotations

import sys

from tieout.warehouse.copying import main

if __name__ == "__main__":
    sys.exit(main())
