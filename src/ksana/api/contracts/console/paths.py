"""Paths of the console's read API."""

ACTIVITY = "/api/v1/activity"
