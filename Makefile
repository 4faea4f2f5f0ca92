# make demo   set up and run the main job on the embedded data
# make test   set up and run the tests
# make slow   the long tests; make mutants: break the code on purpose, the tests must notice
# make docs   the documentation as a site, in site/
# make lint   ruff, mypy (strict), import layers

VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
BASE := $(VENV)/.base
READY := $(VENV)/.ready

.PHONY: demo test slow test-faults mutants docs lint clean

# The whole environment is pinned by constraints.txt, so that two checkouts never differ.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Modules are compiled here, once. Where PYTHONDONTWRITEBYTECODE is set, as in most containers, every command would
# otherwise compile thousands of them anew.
$(BASE): pyproject.toml constraints.txt
	@echo "Setting up $(VENV): once, about a minute"
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	$(BIN)/python -m compileall -q src
	@touch $@

$(READY): $(BASE)
	@echo "Adding what tests and extras need: once, a minute or two"
	$(PIP) -e ".[text,excel,cluster,export,tensorboard,dev,docs]"
	@touch $@

demo: $(BASE)
	$(BIN)/python examples/demo.py

test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile

slow: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 -m slow --timeout 900

# Every test of a fault, default or slow, and random kills for PUNCE_FAULTS_SECONDS (900), which add to
# benchmarks/results/faults.json (python benchmarks/pages.py then brings docs/reliability.md up to date). After an hour
# no further test is begun, and the run fails.
test-faults: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile -m faults --timeout 900 --session-timeout 3600

mutants: $(READY)
	$(BIN)/python -m tests.mutants

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lint: $(READY)
	$(BIN)/ruff check src tests benchmarks examples docs/*.py
	$(BIN)/ruff format --check src tests benchmarks examples docs/*.py
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
