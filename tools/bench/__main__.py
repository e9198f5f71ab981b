"""`python -m tools.bench`: every contender on every dataset, a table, and the page with the results."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from scripts import bootstrap

from tools.bench.contenders import CONTENDERS, IN_BENCH_ENVIRONMENT
from tools.bench.data import KINDS, Dataset
from tools.bench.measuring import Measured, measured
from tools.bench.report import Results, agreement_of, page, table

HOME: Final = bootstrap.STATE / "bench"
VENV: Final = HOME / "venv"
PAGE: Final = bootstrap.ROOT / "docs" / "reference" / "performance.md"
RESULTS: Final = PAGE.with_suffix(".json")
MILLION: Final = 1_000_000
SIZES: Final = (1, 10, 20)
RATES: Final = (0.0, 0.0001, 0.01, 1.0)
LARGEST: Final = 100


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the requested measurements; return 1 if contenders disagree about the breaks, else 0."""
    options = _arguments(arguments)
    HOME.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"SPARK_DRIVER_MEMORY": options.memory, "SPARK_LOCAL_IP": "127.0.0.1"}
    if IN_BENCH_ENVIRONMENT & set(options.only):
        _install()
    results = Results.load(RESULTS) if options.report else Results()
    for millions in options.sizes:
        for rate in options.rates:
            dataset = Dataset(int(millions * MILLION), rate, tuple(options.kinds), HOME / "data")
            print(f"{millions:g} million a side, {rate:.2%} broken", flush=True)
            _write_data(dataset, environment)
            for name in options.only:
                measured_run = _measured(name, dataset, options.repeats, options.limit, environment)
                results.add(dataset, name, measured_run)
                print(f"  {name:14} {_result_text(measured_run)}", flush=True)
                if options.report:
                    results.save(RESULTS)
                    PAGE.write_text(page(results, options.memory, options.note), encoding="utf-8")
            if not options.keep:
                shutil.rmtree(dataset.folder)
        if not options.keep:
            shutil.rmtree(HOME / "data" / str(int(millions * MILLION)), ignore_errors=True)
    print(table(results))
    if options.report:
        print(f"written: {PAGE.relative_to(bootstrap.ROOT)}")
    disagreements = agreement_of(results)
    for disagreement in disagreements:
        print(f"error: {disagreement}", file=sys.stderr)
    return 1 if disagreements else 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument("--sizes", type=float, nargs="+", default=list(SIZES), help="million messages a side")
    parser.add_argument(
        "--largest", action="store_true", help=f"measure {LARGEST} million as well (100 GB of disk)"
    )
    parser.add_argument(
        "--rates", type=float, nargs="+", default=list(RATES), help="shares of broken messages"
    )
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="how messages break")
    parser.add_argument(
        "--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS), help="these contenders"
    )
    parser.add_argument(
        "--repeats", type=int, default=4, help="runs of each; of several the first is not counted"
    )
    parser.add_argument(
        "--limit", type=float, default=900, help="seconds for all runs of a contender on one dataset"
    )
    parser.add_argument("--memory", default="6g", help="heap of Spark's driver, memory limit of DuckDB")
    parser.add_argument("--keep", action="store_true", help="leave the data in .tieout/bench/data")
    parser.add_argument(
        "--note", default="", help="a sentence for the page, such as what else the machine did"
    )
    parser.add_argument(
        "--no-report", dest="report", action="store_false", help="leave page and results as they are"
    )
    options = parser.parse_args(arguments)
    if options.largest:
        options.sizes = [*options.sizes, float(LARGEST)]
    return options


def _install() -> None:
    """Create the contenders' own environment from requirements/bench.txt, once for each content of that file."""
    requirements = (bootstrap.ROOT / "requirements" / "bench.txt").read_text(encoding="utf-8")
    stamp = VENV / ".tieout-bench"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == requirements:
        return
    uv = bootstrap.find_uv() or "uv"
    environment = bootstrap.installer_environment() | {"VIRTUAL_ENV": str(VENV)}
    print("installing datacompy and DuckDB into .tieout/bench/venv …", flush=True)
    for command in (
        [uv, "venv", "--quiet", "--clear", "--python", bootstrap.INTERPRETER, str(VENV)],
        [uv, "pip", "install", "--quiet", "--require-hashes", "-r", "requirements/bench.txt"],
    ):
        subprocess.run(command, check=True, env=environment, cwd=bootstrap.ROOT)
    stamp.write_text(requirements, encoding="utf-8")


def _write_data(dataset: Dataset, environment: dict[str, str]) -> None:
    """Write the data in a separate process, to keep this one's memory small."""
    code = (
        "from pathlib import Path; from tools.bench.data import Dataset, ensure; "
        "from tieout.engine.session import local_session; "
        f"ensure(local_session('bench'), Dataset({dataset.rows}, {dataset.rate}, {dataset.kinds}, "
        f"Path({str(dataset.home)!r})))"
    )
    with (HOME / "bench.log").open("a", encoding="utf-8") as log:
        subprocess.run(
            [sys.executable, "-c", code], check=True, env=environment, stderr=log, cwd=bootstrap.ROOT
        )


def _measured(
    name: str, dataset: Dataset, repeats: int, limit: float, environment: dict[str, str]
) -> Measured:
    python = str(VENV / "bin" / "python") if name in IN_BENCH_ENVIRONMENT else sys.executable
    words = [name, str(dataset.produced), str(dataset.folder), str(repeats)]
    process_environment = environment | {"PYTHONPATH": str(bootstrap.ROOT), "PYSPARK_PYTHON": python}
    if name not in IN_BENCH_ENVIRONMENT:
        process_environment |= {"PYTHONPATH": f"{bootstrap.ROOT}:{bootstrap.ROOT / 'src'}"}
    return measured(
        [python, "-m", "tools.bench.contenders", *words],
        process_environment,
        limit,
        HOME / "bench.log",
    )


def _result_text(run: Measured) -> str:
    if run.seconds is None:
        return str(run.failure)
    return (
        f"{run.seconds:8.1f} s  {run.cpu:8.1f} s of processor  {(run.memory or 0) / 2**30:5.1f} GiB  "
        f"{run.answer or ''}"
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (bootstrap.BootstrapError, subprocess.CalledProcessError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
