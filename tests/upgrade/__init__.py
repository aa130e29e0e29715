"""Upgrades: the program of the schema before this one, and this one, on one database."""
