"""One thin router a contract."""
