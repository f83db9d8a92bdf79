# Everything runs in .venv, which is created on first use; Python 3.11 or newer and make are all that is needed.
# Another interpreter, and the oldest supported versions, each in an environment of its own:
#   make test PYTHON=python3.13 VENV=.venv-3.13
#   make test CONSTRAINTS=constraints/oldest.txt VENV=.venv-oldest
# An empty CONSTRAINTS= takes the newest versions that pip finds.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTHON_VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
CONSTRAINTS ?= $(wildcard constraints/python$(PYTHON_VERSION).txt)
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(addprefix --constraint ,$(CONSTRAINTS))
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

.PHONY: demo quick test test-all shards weights weight lint format types docs site-version notebooks api wheel release printed benchmarks accelerator lock audit clean

demo: $(VENV)/installed
	$(BIN)/python -m dpjax demo

# The tests closest to what has changed, and a core: before each commit.
quick: $(VENV)/installed
	$(PYTEST) --tier quick $$($(BIN)/python -m tests.tools.quick)

# The light tests and the proofs, in float64: what would find most faults.
test: $(VENV)/installed
	$(PYTEST) --tier quick

# Everything: float64, float32, and slow tests with the options of XLA that users have. SHARD=3/20 is a twentieth.
SHARD ?= 1/1
test-all: $(VENV)/installed
	$(PYTEST) --shard $(SHARD) -m "not slow and not x32"
	DPJAX_TEST_FLOAT32=1 $(PYTEST) --shard $(SHARD)
	XLA_FLAGS= $(PYTEST) --shard $(SHARD) -m slow

# Shards in rotation, as many as there is time for.
MINUTES ?= 20
shards: $(VENV)/installed
	$(BIN)/python -m tests.tools.shards $(MINUTES)

# Brings tests/weights.json up to date, after a complete run.
weights: $(VENV)/installed
	rm -rf .weights
	DPJAX_TEST_WEIGHTS=.weights DPJAX_TEST_CACHE=.weights/cache $(MAKE) test-all
	$(BIN)/python -m tests.tools.weights .weights

# What import, first calls, the demo, the tests and CI cost, in J.
weight: $(VENV)/installed-dev $(VENV)/installed-docs
	$(BIN)/python -m benchmarks.weight

lint: $(VENV)/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: $(VENV)/installed-dev
	$(BIN)/mypy

docs: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# Shows below the code of the pages what it prints: of PAGES, or of all, in half an hour. Slow tests compare.
printed: $(VENV)/installed
	$(BIN)/python -m tests.tools.printed $(PAGES)

# Adds the site of this version, as the latest, to the local branch gh-pages: readers choose between versions. Pushes nothing.
site-version: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mike deploy --update-aliases $$($(BIN)/python -c 'import dpjax; print(dpjax.__version__)') latest
	$(BIN)/mike set-default latest

# Executes the notebooks that have changed, some minutes each, for Jupyter and for the site's gallery, which keeps small
# copies of eight in gallery/executed.
NOTEBOOKS := $(patsubst notebooks/%.py,notebooks/executed/%.ipynb,$(wildcard notebooks/*.py))

notebooks: $(NOTEBOOKS)
	$(BIN)/python -m gallery.copies

notebooks/executed/%.ipynb: notebooks/%.py | $(VENV)/installed-docs
	$(BIN)/python -m gallery.execute $< $@

# Writes down the public interface, after a change that is meant.
api: $(VENV)/installed
	$(BIN)/python -m tests.tools.public_api

# Builds the wheel, installs it in an environment of its own, and draws from a posterior there.
wheel:
	$(PYTHON) -m venv --clear $(VENV)-wheel
	$(VENV)-wheel/bin/python -m pip install --quiet --disable-pip-version-check build
	$(VENV)-wheel/bin/python -m build --outdir $(VENV)-wheel/dist
	$(VENV)-wheel/bin/python -m pip install --quiet --disable-pip-version-check $(addprefix --constraint ,$(CONSTRAINTS)) $(VENV)-wheel/dist/*.whl
	cd $(VENV)-wheel && bin/python -I $(CURDIR)/.ci/smoke.py

# Refuses until versions, dates and addresses agree; then runs every check, and builds the site. Pushes and uploads nothing.
release: $(VENV)/installed
	$(BIN)/python -m tests.tools.versions
	.ci/run
	$(MAKE) notebooks site-version wheel

# QUICK=1: every benchmark at the smallest size that runs its code; no figure means anything then.
benchmarks: $(VENV)/installed
	$(if $(QUICK),XLA_FLAGS="$$($(BIN)/python -m tests.tools.xla_flags)") $(BIN)/python -m benchmarks $(if $(QUICK),--tiny)

# What an accelerator takes, row by row, each with a limit; PLATFORM=cpu is one core beside it, MINUTES=13 ends the plan.
# QUICK=1 runs all rows at the smallest size, for a file of its own.
ACCELERATOR := $(if $(QUICK),--tiny --json accelerator-quick.json,--json benchmarks/results/accelerator.json)

accelerator: $(VENV)/installed
	$(BIN)/python -m benchmarks.accelerator $(ACCELERATOR) $(if $(PLATFORM),--platform $(PLATFORM)) $(if $(filter command line,$(origin MINUTES)),--minutes $(MINUTES))

# Writes the newest versions that pip finds for this Python into its constraints file.
lock:
	$(PYTHON) -m venv --clear $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet --disable-pip-version-check ".[plots,census,formula,data,privacy,opendp,test,dev,docs]"
	$(VENV)-lock/bin/python -m pip freeze --exclude dpjax > constraints/python$(PYTHON_VERSION).txt
	rm -rf $(VENV)-lock

# Fails if a version that a constraints file names is known to be vulnerable; oldest.txt has old ones by its purpose.
audit:
	$(PYTHON) -m venv --clear $(VENV)-audit
	$(VENV)-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit==2.10.1
	set -e; for pinned in constraints/python*.txt; do \
		$(VENV)-audit/bin/pip-audit --disable-pip --no-deps --progress-spinner off --requirement $$pinned; done

clean:
	rm -rf $(VENV) $(VENV)-wheel $(VENV)-audit .weights dpjax-demo site notebooks/executed

$(VENV)/installed: pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dpjax needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable ".[plots,census,formula,data,privacy,opendp,test]"
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(INSTALL) --editable ".[dev]"
	touch $@

$(VENV)/installed-docs: $(VENV)/installed
	$(INSTALL) --editable ".[docs]"
	touch $@
