# make run    set up and start Ksana on http://127.0.0.1:7100 with its data in ./data
# make test   set up and prove everything this machine can prove
.DEFAULT_GOAL := help
.PHONY: help setup run test check pytest bench faults lock clean

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

help:
	@sed -n 's/^# //p' Makefile
	@echo "also: setup, check (format, lint, types, imports), pytest, bench, faults, lock, clean"

setup: $(READY)

$(READY): pyproject.toml requirements/dev.txt requirements/uv.txt scripts/setup
	@sh scripts/setup
	@touch $(READY)

run: setup
	@$(BIN)/ksana serve

test: check pytest

check: setup
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

pytest: setup
	$(BIN)/pytest -n 3 --dist worksteal

bench: setup
	$(BIN)/python -m bench $(ARGS)

faults: setup
	$(BIN)/python -m tests.faults $(ARGS)

lock: setup
	sh scripts/lock

clean:
	rm -rf $(VENV) .tools .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist build
