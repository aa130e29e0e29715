# make run    set up and start Ksana on http://127.0.0.1:7100 with its data in ./data
# make test   set up and prove everything this machine can prove
.DEFAULT_GOAL := help
.PHONY: help setup run test check pytest web web-dev screenshots bench faults lock clean

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DRAWS := $(VENV)/.bench
CONSOLE := $(VENV)/.console
CONSOLE_CHECKED := $(VENV)/.console-checked
CONSOLE_SOURCES := scripts/web $(shell find web -name node_modules -prune -o -type f ! -name schema.d.ts ! -name commands.json -print) src/ksana/cli/client/calls.py

help:
	@sed -n 's/^# //p' Makefile
	@echo "also: setup, check (format, lint, types, imports), pytest, web (build the console), web-dev, screenshots (of every page, into build/screenshots), bench, faults, lock, clean"

setup: $(READY) $(CONSOLE)

$(READY): pyproject.toml requirements/dev.txt requirements/uv.txt scripts/setup
	@sh scripts/setup
	@touch $(READY)

# Tried once for each state of its sources: without npm's registry, every start would wait for it again.
$(CONSOLE): $(READY) $(CONSOLE_SOURCES)
	@sh scripts/web setup
	@touch $(CONSOLE)

run: setup
	@$(BIN)/ksana serve

test: check pytest

check: setup
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(MAKE) --no-print-directory $(CONSOLE_CHECKED)

# With the API's description, its types change.
$(CONSOLE_CHECKED): $(READY) $(CONSOLE_SOURCES) $(shell find src/ksana/api -name '*.py')
	sh scripts/web check
	@test ! -d web/node_modules || touch $(CONSOLE_CHECKED)

web: $(READY)
	@sh scripts/web build
	@touch $(CONSOLE)

web-dev: $(READY)
	@sh scripts/web dev

screenshots: setup
	$(BIN)/python -m tests.web.screenshots $(ARGS)

pytest: setup
	$(BIN)/pytest -n 3 --dist worksteal

$(DRAWS): $(READY) requirements/bench.txt
	@sh scripts/setup bench
	@touch $(DRAWS)

bench: $(DRAWS)
	$(BIN)/python -m bench $(ARGS)

faults: setup
	$(BIN)/python -m tests.faults $(ARGS)

lock: setup
	sh scripts/lock

clean:
	rm -rf $(VENV) .tools web/node_modules src/ksana/console_assets .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist build
