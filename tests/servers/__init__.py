"""Real, private database servers for the tests, apart from any that the system runs."""
