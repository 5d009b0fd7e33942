# Everything runs in .venv, which is made on first use and again when pyproject.toml changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# Fields of other projects' kinds and files, of results and of pages' data, what `testing` and `bench` ship, and what NumPy, asyncio, httptools, plugins or tests reach by name.
NOT_DEAD := src/mooring/(model/(api|devices/dialects|gangs/dialects|jobs)|config|report/simulation|bench|testing)/|topology_match|reads_pod_|writeable|__call__|is_trying|open_row|close_row|SCALE_UP|CONSOLIDATION|RESIZE|unload|Arranged|pod_disruption_budgets|should_exit|num_tickets|capture_signals|compact|data_received|connection_lost|on_(header|body|message_begin|message_complete)|log_errors|taken_at|pods_to

.DEFAULT_GOAL := help
.PHONY: help install test test-live test-e2e versus versus-running fuzz demo screenshot image lock sbom docs lint format

help:  ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /make \1\t/p' $(MAKEFILE_LIST)

install: $(INSTALLED)  ## make .venv with Mooring and its tools in it

$(INSTALLED): pyproject.toml
	@echo "making $(VENV) and installing Mooring with its tools: a minute or two, each package is named below"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on --editable '.[dev]'
	@touch $@
	@echo "ready: $(BIN)/mooring --help"

test: install  ## run the tests on all cores (SLOW=1: all of the slow ones, and six times the examples)
	$(BIN)/python -m pytest -n auto --dist worksteal $(if $(SLOW),,--quick)

test-live: install  ## run the tests of the live driver on a real control plane (needs Go)
	$(BIN)/python tests/live/binaries.py etcd kube-apiserver
	$(BIN)/python -m pytest -m 'live and not long' tests/live

versus: install  ## kube-scheduler and Mooring in turn on one real API server (needs Go)
	$(BIN)/python tests/live/versus.py

versus-running: install  ## both again: how soon they start and bind, and what heartbeats cost (needs Go)
	$(BIN)/python tests/live/versus_running.py

test-e2e: install  ## run Kubernetes' own end-to-end tests against the embedded control plane (needs Go; QUICK=1: some; GATES=1: all; RANDOM_ORDER=seed)
	$(BIN)/python tests/e2e/run.py $(if $(QUICK),--quick) $(if $(GATES),--gates) $(if $(RANDOM_ORDER),--random $(RANDOM_ORDER))

fuzz: install  ## mutate the examples, and send odd requests to a server, for some minutes: nothing may end in a traceback
	$(BIN)/python -m pytest -n auto tests/fuzz --hypothesis-profile=thorough
	$(BIN)/python tests/fuzz/server.py --count 100000

demo: install  ## bring up a cluster, let two teams share its GPUs; SERVE=1 leaves it running
	$(BIN)/python examples/demo/demo.py $(if $(SERVE),--serve)

screenshot: install  ## take the README's picture of the simulator's page (needs Chromium)
	$(BIN)/python tools/screenshot.py

IMAGE ?= mooring:0.1.0
image:  ## build the image (needs Docker, or another program by DOCKER=)
	$(or $(DOCKER),docker) build -f deploy/Dockerfile -t $(IMAGE) .

lock:  ## pin the image's packages by version and hash (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock" --upgrade --extra fast pyproject.toml -o deploy/requirements.txt
	echo 'setuptools>=77' | uv pip compile -q --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock" --upgrade --no-annotate - -o deploy/build-requirements.txt

sbom:  ## the packages of the image, as a CycloneDX document: mooring.cdx.json
	$(PYTHON) tools/sbom.py > mooring.cdx.json

docs: install  ## build the documentation site into build/site; broken links and anchors fail
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

lint: install  ## check style, types, layers, words and links
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/lint-imports
	@echo "code that nothing uses:"; ! $(BIN)/vulture src | grep -vE '$(NOT_DEAD)'
	$(BIN)/python tools/vocabulary.py
	$(MAKE) docs

format: install  ## put imports in order and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
