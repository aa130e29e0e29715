"""Benchmarks: figures are ratios within one run, because machines are noisy. `make bench` prints the table."""
