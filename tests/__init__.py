"""Ksana's tests. `servers` starts the databases that they need."""
