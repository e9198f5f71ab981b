"""Airflow's users and permissions, for the pages: a pipeline's permissions are its DAG's.

Reading a pipeline's pages needs the right to read the DAG's runs; accepting, silencing and judging again need the
right to change them. Airflow itself does not protect the pages of a plugin.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user
from airflow.models.dag import DagModel, DagTag
from airflow.utils.session import create_session
from sqlalchemy import select

from tieout.model import Guarantee

TAG: Final = "tieout"


class AirflowAccess:
    """The permissions of the Airflow in whose API server the pages run."""

    @property
    def identify(self) -> Callable[..., Any]:
        """The dependency by which Airflow's own API knows its user: 401 without a valid token or cookie."""
        return get_user  # type: ignore[no-any-return]  # airflow is untyped to us

    def readable(self, user: Any, pipelines: Collection[str]) -> frozenset[str]:
        """Return the pipelines whose DAG's runs the user may read, including deleted DAGs."""
        return self._permitted("GET", user, pipelines)

    def may_write(self, user: Any, pipeline: str) -> bool:
        """Return whether the user may change the runs of the pipeline's DAG, as clearing one does."""
        return pipeline in self._permitted("PUT", user, [pipeline])

    def name(self, user: Any) -> str:
        """Return the user's name in Airflow."""
        return str(user.get_name())

    def scheduled(self, user: Any) -> frozenset[str]:
        """Return the pipelines with an active DAG in Airflow, and whose runs the user may read."""
        ours = select(DagTag.dag_id).where(DagTag.name == TAG)
        promising = select(DagTag.dag_id).where(DagTag.name.in_([guarantee.value for guarantee in Guarantee]))
        query = select(DagModel.dag_id).where(
            DagModel.dag_id.in_(ours), DagModel.dag_id.in_(promising), DagModel.is_stale.is_(False)
        )
        with create_session() as session:
            known = frozenset(session.scalars(query))
        return self.readable(user, known)

    @staticmethod
    def _permitted(method: str, user: Any, pipelines: Collection[str]) -> frozenset[str]:
        manager = get_auth_manager()
        # Airflow 3.1 knows no teams.
        teams_of = getattr(DagModel, "get_dag_id_to_team_name_mapping", None)
        teams = teams_of(list(pipelines)) if teams_of is not None and pipelines else {}
        of_teams = {pipeline: {"team_name": name} for pipeline, name in teams.items() if name is not None}
        return frozenset(
            pipeline
            for pipeline in pipelines
            if manager.is_authorized_dag(
                method=method,
                access_entity=DagAccessEntity.RUN,
                details=DagDetails(id=pipeline, **of_teams.get(pipeline, {})),
                user=user,
            )
        )
