"""Mutations of the SQL that judges, each of which must turn a test of the rounds red: `make mutate`."""
