"""Runtime state of plans: checkpoints, projections, tenant index and tenant lock."""
