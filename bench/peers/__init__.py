"""Other programs with the same work to do. `with_*.py` are run by each one's own Python; `measuring` runs them all."""
