"""Spark as the stack configures it: for windows of a few thousand rows, on two cores.

These are settings of this stack and not of the pipelines' DAGs, because they are wrong for large evidence.
"""

from __future__ import annotations

from scripts.stack.layout import Layout

_DEFAULTS = {
    # The optimising compiler's work does not pay in a job of half a minute: half the time without it.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "1g",
}


def configure(layout: Layout) -> None:
    """Write Spark's configuration folder, which SPARK_CONF_DIR names."""
    layout.spark.mkdir(parents=True, exist_ok=True)
    lines = [f"{name} {value}\n" for name, value in _DEFAULTS.items()]
    (layout.spark / "spark-defaults.conf").write_text("".join(lines))
