"""Ksana decides when work runs, runs it, and accounts for every instant."""

__version__ = "0.1.0"
