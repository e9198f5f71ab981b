"""The fault matrix: kills each part of the stack at each step of a run and checks the results; not a test suite."""
