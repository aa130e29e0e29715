"""Several instances on one simulated database, stepped by a seed: what chaos finds by luck, found by search."""
