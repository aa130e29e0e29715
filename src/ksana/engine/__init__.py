"""The engine: due instants, claims, runs, timers, recovery."""
