"""Measures the pages with a year of windows and a run of a million breaks: server, database and browser."""
