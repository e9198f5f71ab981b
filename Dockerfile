# Airflow, Java, Spark's client and Tieout in one image; which Airflow process it runs is the command's choice.
FROM python:3.11-slim-bookworm

RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 50000 tieout

WORKDIR /opt/tieout
COPY requirements/runtime.txt requirements/build.txt requirements/
RUN pip install --no-cache-dir --require-hashes -r requirements/runtime.txt -r requirements/build.txt

COPY pyproject.toml README.md ./
COPY src src
COPY expectations expectations
RUN pip install --no-cache-dir --no-deps --no-build-isolation .

COPY dags dags
COPY plugins plugins
COPY spark_apps spark_apps

# Spark listens on loopback unless its connection says otherwise; statements and Airflow's own files go to the volume.
ENV AIRFLOW_HOME=/var/lib/tieout/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/tieout/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/tieout/plugins \
    AIRFLOW__CORE__LOAD_EXAMPLES=False \
    TIEOUT_HOME=/var/lib/tieout \
    SPARK_LOCAL_IP=127.0.0.1
RUN install -d -o tieout -g tieout /var/lib/tieout
VOLUME /var/lib/tieout

USER tieout
ENTRYPOINT ["tini", "--"]
CMD ["airflow", "version"]
