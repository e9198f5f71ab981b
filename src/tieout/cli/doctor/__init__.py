"""The checks of `tieout doctor`: everything that a window judged by Airflow needs, one finding each."""

from tieout.cli.doctor.examining import examined
from tieout.cli.doctor.finding import Finding

__all__ = ["Finding", "examined"]
