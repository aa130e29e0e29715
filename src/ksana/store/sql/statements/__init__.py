"""The statements, by aggregate. A handler applies all commands of its kind.

Those of the hot path (fire, enqueue, claim, settle) do so with a number of statements that does not grow with theirs.
"""
