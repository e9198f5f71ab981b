"""The environment variables that Tieout reads, as docs/reference/environment.md lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tieout import settings


@dataclass(frozen=True)
class Variable:
    """One environment variable that Tieout reads, as docs/reference/environment.md lists it."""

    name: str
    default: str
    meaning: str


VARIABLES: Final = (
    Variable(
        settings.DATABASE_URL,
        "none; Airflow's tasks need it",
        "the result store: `postgresql://user:password@host:port/database`, reserved characters as %-escapes",
    ),
    Variable(
        settings.CONTRACTS,
        "`contracts` beside the DAG files",
        "the folders whose `*.yml` are contracts, parted by `:`; relative ones start at the folder above the DAG files",
    ),
    Variable(
        settings.HOME,
        "`.tieout` of the working directory",
        "takes the statements (`statements/`) and the plans of replays (`replays/`); Airflow's workers and Spark's "
        "executors must see it under one path",
    ),
    Variable(
        settings.JARS,
        "`.tieout/jars` of the working directory",
        "the folder of the jars that Spark takes along where a contract reads a Kafka cluster, Delta or Iceberg: "
        "`make jars` fills it",
    ),
    Variable(
        settings.PRELOAD_CHECKS,
        "off",
        "`1`: Airflow's scheduler imports Great Expectations once, for the tasks that it forks; costs it 215 MB, "
        "spares each task five seconds",
    ),
    Variable(
        settings.DATA_DOCS,
        "off",
        "`1`: the task `check` adds a page of each run to the pipeline's Data Docs under `data_docs/` of the home, and "
        "the window's page leads to it; takes a task about two seconds more",
    ),
    Variable(
        settings.BUNDLES,
        "off",
        "`1`: each scheduled run leaves an audit bundle under `bundles/` of the home, which nobody deletes; where one "
        "cannot be made, the run's log says why, and the run goes on",
    ),
    Variable(
        settings.RESULT_PATH,
        "none",
        "set by the tasks for the Spark job they start: where it leaves its small result",
    ),
    Variable(
        settings.HANDOVER_PATH,
        "none",
        "set by the tasks for the Spark job they start: the file with the store's URL and the connections, for its "
        "driver alone, which deletes it",
    ),
    Variable(
        settings.SPARK_VARIABLES,
        "none",
        "further environment variables that Spark's processes get, by name or pattern, with commas, such as `AWS_*`; "
        "whoever can run code in an executor can read them",
    ),
    Variable(
        settings.KEEP_SUPERSEDED_DAYS,
        "for ever",
        "days, 35 or more, that runs are kept which do not count for their window: retention.md",
    ),
    Variable(
        settings.KEEP_BREAKS_DAYS,
        "for ever",
        "days, 35 or more, that a window's breaks are kept in the store",
    ),
    Variable(
        settings.KEEP_STATEMENTS_DAYS,
        "for ever",
        "days, 35 or more, that the folders of statements are kept under the home",
    ),
    Variable(
        settings.UNPACKED_RECORD_MB,
        "128; for a line or row a sixty-fourth of Java's heap, if that is less",
        "megabytes that one batch of a Kafka segment, one line of text, one row of a table or one page of Parquet may "
        "unpack to; a larger one is not read, and named",
    ),
    Variable(
        settings.UNPACKED_FILE_MB,
        "16384",
        "megabytes that one packed file or Kafka segment, or the repeated values of one Parquet file, may unpack to; "
        "what is beyond is not read, and named",
    ),
    Variable(
        settings.BUCKET_MB,
        "a quarter of the machine's or container's memory where Spark works on this machine, else 2048",
        "megabytes that the task which judges a window with SQL may take before it spills into `SPARK_LOCAL_DIRS`; "
        "a window that needs more, about 1.6 kB a row, is cut into buckets for several tasks, which on this machine "
        "share it",
    ),
    Variable(
        settings.SPARK_LOCAL_DIRS,
        "the system's folder for temporary files",
        "where Spark keeps what does not fit into memory: one folder or several, with commas",
    ),
    Variable(
        settings.DRIVER_MEMORY,
        "a quarter of the machine's or container's memory",
        "Java's heap where Spark works on this machine, such as `6g`; Spark's own configuration goes before it",
    ),
    Variable(
        settings.CACHES,
        "`.cache` of the user's home",
        "takes, in `tieout/`, the archive of Java's classes that the second command on a machine leaves for the next "
        "ones: 180 MB, and they start a third sooner",
    ),
    Variable(
        settings.SPARK_SECRET,
        "none; jobs on a standalone cluster need it",
        "the secret that the driver, master and workers of a standalone cluster know each other by, the same for all: "
        "Spark's own variable for it",
    ),
    Variable("JAVA_HOME", "`java` on the path", "which Java Spark runs on: 17 or newer"),
    Variable(
        "AIRFLOW_CONN_<NAME>",
        "none",
        "a connection that a contract names, as JSON or URI; in Airflow, its own connections and secrets backends "
        "serve as well",
    ),
)
