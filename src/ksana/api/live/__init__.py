"""What happens, told while it happens: one reader of the journal in a process, and everybody who listens to it.

store ──▶ reader (from the last event on, and gaps) ──▶ hub ──▶ listener, listener, … ──▶ a stream each
"""
