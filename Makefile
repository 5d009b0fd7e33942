# Everything runs in .venv, which is made on first use and again when pyproject.toml changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# Fields of other projects' kinds and files, what `testing` ships, and what NumPy, plugins or tests reach by name.
NOT_DEAD := src/mooring/(model/(api|gangs/dialects|jobs)|config|testing)/|reads_pod_|writeable|__call__|is_trying|unload|Arranged|pod_disruption_budgets

.DEFAULT_GOAL := help
.PHONY: help install test fuzz demo lint format

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /make \1\t/p' $(MAKEFILE_LIST)

install: $(INSTALLED)  ## make .venv with Mooring and its tools in it

$(INSTALLED): pyproject.toml
	@echo "making $(VENV) and installing Mooring with its tools: a minute or two, each package is named below"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on --editable '.[dev]'
	@touch $@
	@echo "ready: $(BIN)/mooring --help"

test: install  ## run the tests on all cores
	$(BIN)/python -m pytest -n auto

fuzz: install  ## mutate the examples for some minutes: nothing may end in a traceback
	$(BIN)/python -m pytest -n auto tests/fuzz --hypothesis-profile=thorough

demo: install  ## place the pods of a GPU platform onto its nodes
	$(BIN)/mooring schedule -f examples/ai-platform

lint: install  ## check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/lint-imports
	@echo "code that nothing uses:"; ! $(BIN)/vulture src | grep -vE '$(NOT_DEAD)'

format: install  ## put imports in order and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
