"""The Spark Connect session of the agreement tests."""

from tests.agreement.conftest import spark

__all__ = ["spark"]
