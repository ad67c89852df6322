# Needs Python 3.11 or newer, pip, make and git; everything else goes into .venv on first use.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
CASES  := conformance/cases

.DEFAULT_GOAL := help
.PHONY: help demo up test check soak bench schema clean

help: ## say what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --group dev -e .
	@touch $@

demo: $(READY) ## place a 1,024-accelerator training job on a simulated cluster
	$(BIN)/muster demo

up: $(READY) ## run an embedded cluster on loopback until Ctrl-C; options in ARGS="..."
	$(BIN)/muster up $(ARGS)

check: $(READY) ## lint, types, import contracts
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check src tests tools
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check ## everything CI runs: check, tests, conformance cases
	$(BIN)/pytest -n auto

soak: $(READY) ## every random run (2,000 lives, 10,000 crashes, 5,000 orders of eviction), some hours
	$(BIN)/pytest -n auto -m soak --soak

bench: $(READY) ## every benchmark shape with its target
	$(BIN)/muster bench

schema: $(READY) ## make the reduced schema file anew
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --group schema
	$(BIN)/python tools/make_schema.py

clean: ## remove the environment and caches
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .import_linter_cache .hypothesis
