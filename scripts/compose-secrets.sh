#!/usr/bin/env bash
# Writes the secrets that compose.yaml reads into .env, each one of its own, readable for the caller alone.
# An .env that is there is kept: the databases have the passwords that they were made with.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 077
if [[ -e .env ]]; then
  echo ".env is there already; it keeps its secrets" >&2
  chmod 600 .env
  exit 0
fi
draft=$(mktemp .env.XXXXXX)
for name in POSTGRES_PASSWORD AIRFLOW_DATABASE_PASSWORD TIEOUT_DATABASE_PASSWORD AIRFLOW_JWT_SECRET AIRFLOW_SECRET_KEY SPARK_SECRET; do
  printf '%s=%s\n' "$name" "$(openssl rand -hex 32)" >>"$draft"
done
printf 'AIRFLOW_FERNET_KEY=%s\n' "$(openssl rand -base64 32 | tr '+/' '-_')" >>"$draft"
mv "$draft" .env
