"""The fault matrix: what is killed, at which step of a run, and what is found then. No part of the test suite."""
