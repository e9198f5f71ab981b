# Two commands matter: `make demo` and `make test`. The rest is for working on Tieout.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo up down fire jars engines test snapshots mutate fuzz check types unit audit requirements requirements-airflow record faults systems score bench pages install install-dev

# An image that sets this would have Airflow, Great Expectations and PySpark compiled anew by each of hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
STACK := $(BIN)/python -m tools.stack
# What Spark takes along to read Kafka topics, Delta and Iceberg tables.
JARS := .tieout/jars
PINNED_JARS := requirements/jars
# The engines whose faults are played, each with a folder of pins in requirements/engines.
ENGINES := $(notdir $(wildcard requirements/engines/*))
# Where `make score` keeps what it judges.
SCORED := .tieout/score
# What looks for known holes in packages; it is installed for the moment of use.
PIP_AUDIT := 2.10.1
# How many processes run the tests, each with its own PostgreSQL, Spark and Airflow home: three on two cores, as much of the suite is waiting.
WORKERS ?= 3
# How many cases `make fuzz` gives each parser.
FUZZ_CASES ?= 1000
# What the quick gate looks at beside the package itself.
CODE := src spark_apps dags plugins scripts tools tests

help: ## Show what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## Judge the example recordings through Airflow, Spark and PostgreSQL, then stop everything
	@$(PYTHON) scripts/bootstrap.py runtime
	@$(STACK) demo

up: ## Start the same, and leave it running with its user interface
	@$(PYTHON) scripts/bootstrap.py runtime
	@$(STACK) up

down: ## Stop what `make up` started in this checkout
	@test -x $(BIN)/python || { echo "nothing is installed here, so nothing is running"; exit 0; }; $(STACK) down

fire: ## Kill each part of the stack at each moment of a run, and write docs/reference/faults.md (as root; an hour)
	@$(PYTHON) scripts/bootstrap.py runtime
	@$(BIN)/python -m tools.faults --report docs/reference/faults.md $(FIRE_ARGS)

jars: $(JARS)/.fetched ## Fetch what Spark needs to read Kafka topics, Delta and Iceberg tables (needs Maven)

$(JARS)/.fetched: $(PINNED_JARS)/pom.xml $(PINNED_JARS)/checksums.txt
	@command -v mvn >/dev/null || { echo "make jars needs Maven, found none: install it (Debian: apt install maven)"; exit 2; }
	@rm -rf $(JARS) $(JARS).new
	@mvn --quiet --batch-mode -Dstyle.color=never -f $(PINNED_JARS)/pom.xml dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(JARS).new
	@cd $(JARS).new && sha256sum --check --strict --quiet $(CURDIR)/$(PINNED_JARS)/checksums.txt
	@mv $(JARS).new $(JARS)
	@touch $@

# Fetching is mostly waiting for one small file after another, so several engines are fetched at a time.
engines: ## Fetch the engines whose faults are played (needs Maven)
	@$(MAKE) --no-print-directory --jobs 4 $(ENGINES:%=.tieout/engines/%/.fetched)

.tieout/engines/%/.fetched: requirements/engines/%/pom.xml requirements/engines/%/checksums.txt
	@command -v mvn >/dev/null || { echo "make engines needs Maven, found none: install it (Debian: apt install maven)"; exit 2; }
	@rm -rf $(@D) $(@D).new
	@mvn --quiet --batch-mode -Dstyle.color=never -f requirements/engines/$*/pom.xml dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D).new
	@cd $(@D).new && sha256sum --check --strict --quiet $(CURDIR)/requirements/engines/$*/checksums.txt
	@mv $(@D).new $(@D)
	@touch $@

# Tests that need a broker need the jars as well; without Maven, TIEOUT_FAULTS=none leaves both out.
# A process runs whole files, and whole folders of those that tests/conftest.py names: what they share is started once.
test: install-dev $(if $(filter none,$(TIEOUT_FAULTS)),,jars engines) ## Run the whole suite: real PostgreSQL, Spark and Airflow
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --ignore tests/agreement $(PYTEST_ARGS)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist load tests/agreement $(PYTEST_ARGS)

snapshots: install-dev ## Hold the engine against what it said of every history (SNAPSHOTS_ARGS=--golden: of a part; --write)
	@$(BIN)/python -m tests.snapshots $(SNAPSHOTS_ARGS)

mutate: install-dev ## Break each file of the rules, and see that histories notice (ten minutes; MUTATE_ARGS=--all: every place, a night)
	@$(BIN)/python -m tests.mutations $(MUTATE_ARGS)

fuzz: install-dev ## Try parsers, contracts and engine on what nobody wrote on purpose (hours; FUZZ_CASES=60: shorter, one part by PYTEST_ARGS="-k …")
	@TIEOUT_FUZZ_CASES=$(FUZZ_CASES) TIEOUT_DELETIONS=$$((100 * $(FUZZ_CASES))) $(BIN)/python -m pytest --timeout 0 \
	  tests/fuzz tests/judging/test_deletions.py tests/engine/test_fuzz.py tests/engine/test_deleted_files.py tests/engine/test_deleted_rows.py tests/engine/test_damaged_evidence.py $(PYTEST_ARGS)
	@TIEOUT_RANDOM_FAMILIES=67 TIEOUT_RANDOM_SIZE=300 $(BIN)/python -m pytest --timeout 0 tests/judging/test_random_histories.py $(PYTEST_ARGS)
	@TIEOUT_RANDOM_QUEUES=12 TIEOUT_GOLDEN=all $(BIN)/python -m pytest --timeout 0 \
	  tests/judging/test_random_queues.py tests/judging/test_buckets.py tests/judging/test_skipping.py $(PYTEST_ARGS)
	@TIEOUT_GOLDEN=all TIEOUT_WIDTHS=all $(BIN)/python -m pytest --timeout 0 \
	  tests/agreement/test_golden_histories.py tests/agreement/test_two_levels.py $(PYTEST_ARGS)

check: install-dev ## The quick gate: lint, format, types, import contracts, unit tests
	@$(BIN)/ruff check --quiet $(CODE)
	@$(BIN)/ruff format --check --quiet $(CODE)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target types unit
	@$(BIN)/lint-imports

# For `check`, which checks types at the same time.
unit: install-dev
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile tests/unit

types: install-dev ## Check the types of everything
	@$(BIN)/mypy
	@$(BIN)/mypy dags plugins scripts tools tests

# The service answers for each package; `--strict` fails where it does not, which would else look like "no known holes".
audit: install-dev ## Look for known holes in the pinned packages (needs the Open Source Vulnerabilities database)
	@for file in requirements/*.txt; do echo "$$file"; \
	  .tieout/tools/bin/uv tool run --from pip-audit==$(PIP_AUDIT) pip-audit --strict --disable-pip --require-hashes \
	    --vulnerability-service osv --progress-spinner off -r $$file || { echo "make audit: $$file: if a table of packages stands above, raise these in requirements/*.in and run" \
	    "make requirements; else the database was not reached: run this where it can be, through HTTPS_PROXY if need be" >&2; exit 1; }; \
	done

requirements: install-dev ## Compile requirements/*.in into pinned, hashed files
	@for name in tools runtime dev build record bench; do \
	  .tieout/tools/bin/uv pip compile --quiet --generate-hashes --no-header --python-version 3.11 \
	    requirements/$$name.in -o requirements/$$name.txt || exit; done

# Airflow's own constraints are the newest packages of a release's day; the first line of each file says as of which day.
requirements-airflow: install-dev ## Resolve the Airflows into which the wheel is installed by the tests
	@for file in requirements/airflow/*.in; do \
	  .tieout/tools/bin/uv pip compile --quiet --no-header --no-annotate --python-version 3.11 \
	    --exclude-newer $$(sed -n '1s/.*as of \(.*\)\./\1/p' $$file) $$file -o $${file%.in}.txt || exit; done

score: ## Simulate a million messages with every fault, judge them, and write docs/reference/score.md
	@$(PYTHON) scripts/bootstrap.py runtime
	@$(BIN)/tieout simulate examples/simulated/payments.yml --output $(SCORED)/simulated
	@SPARK_DRIVER_MEMORY=5g $(BIN)/tieout reconcile $(SCORED)/simulated/contract.yml \
	  $$(cat $(SCORED)/simulated/window.args) --output $(SCORED)/statement >$(SCORED)/statement.txt; \
	  code=$$?; [ $$code -ne 2 ] || exit $$code
	@$(BIN)/tieout score $(SCORED)/statement --truth $(SCORED)/simulated --report docs/reference/score.md

bench: ## Measure Tieout beside other ways to compare, and write docs/reference/performance.md (hours: see BENCH_ARGS)
	@$(PYTHON) scripts/bootstrap.py runtime
	@$(BIN)/python -m tools.bench $(BENCH_ARGS)

pages: install-dev ## Measure each page with a year of windows and a million breaks, and write docs/reference/pages.md
	@$(BIN)/python -m tools.pages --report docs/reference/pages.md $(PAGES_ARGS)

record: ## Record the examples anew from a real broker (needs Maven)
	@$(PYTHON) -m tools.record $(NAMES)

faults: install-dev ## Strike a real Kafka cluster, judge what is left, and write docs/reference/kafka-faults.md (needs Maven)
	@TIEOUT_FAULTS=all TIEOUT_FAULTS_PAGE=docs/reference/kafka-faults.md $(BIN)/python -m pytest tests/integration/kafka_faults $(PYTEST_ARGS)

systems: install-dev engines ## Strike real engines, judge what is left, and write docs/reference/systems.md (needs Maven)
	@TIEOUT_FAULTS=all TIEOUT_SYSTEMS_PAGE=docs/reference/systems.md $(BIN)/python -m pytest tests/integration/systems $(PYTEST_ARGS)

install: ## Create .venv with what the demonstration needs
	@$(PYTHON) scripts/bootstrap.py runtime

install-dev: ## Create .venv with what the tests need as well
	@$(PYTHON) scripts/bootstrap.py dev
