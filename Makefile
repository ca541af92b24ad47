# `make help` lists the targets. Everything happens in .venv inside this clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
AXE := tests/node_modules/.package-lock.json
WORKERS ?= 2
# Torch would start one thread per core in every test worker; one each is faster together.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
# Compiled modules are kept, also where the environment asks for none: every worker and every
# command that tests start would compile all of them anew. Workers take neighbouring tests, which
# share fixtures; one that is done takes from the other.
PYTEST := PYTHONDONTWRITEBYTECODE= $(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
ARGS ?=
BASE ?= main
# What runs on any machine; sweep_gpu.py and mrpc_model.py are run by hand, with arguments.
BENCH ?= $(addprefix benchmarks/,help_time.py pruned_speed.py streaming.py sweep_cpu.py)

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-changed test-all lint format docs pictures bench clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 16

venv: $(STAMP) ## Create .venv and install the package with everything needed to work on it

# torch goes first and alone: the constraint then keeps the build that pip prefers here, and no
# later requirement can pull in another one with its CUDA libraries.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "bertology needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(STAMP) ## What the bundled model knows, what its heads do, what is lost without them
	$(BIN)/bertology demo $(ARGS)

# axe-core looks at the pages in the tests. Without npm or a network those tests say so and skip.
$(AXE): tests/package-lock.json
	@! command -v npm >/dev/null || npm ci --silent --no-audit --no-fund --prefix tests || \
	  echo "npm could not fetch axe-core; the tests that need it will be skipped"

# Types are checked beside the tests, from their start: whatever core is free first takes the rest.
test: SHELL := bash
test: $(STAMP) $(AXE) ## Run the tests (all but those marked slow) and check types
	@TIMEFORMAT='%U seconds of CPU to check types'; time $(BIN)/mypy & types=$$!; \
	$(PYTEST) -m "not slow" $(ARGS); tests=$$?; \
	wait $$types && exit $$tests

test-changed: $(STAMP) $(AXE) ## Run the tests that a change since BASE (main) can reach
	@reached=$$($(BIN)/python tests/changed.py --since $(BASE)) && \
	echo "$$(echo "$$reached" | wc -l) test files" && $(PYTEST) -m "not slow" $(ARGS) $$reached

test-all: $(STAMP) $(AXE) ## Run every test, also the slow ones
	$(PYTEST) $(ARGS)

lint: $(STAMP) ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP) ## Sort imports and format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP) ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

pictures: $(STAMP) ## Photograph the explorer for README and docs (ARGS="--report FILE" for a report too)
	$(BIN)/python docs/make_pictures.py $(ARGS)

bench: $(STAMP) ## Run the benchmarks (or one: make bench BENCH=benchmarks/x.py)
	@for script in $(BENCH); do echo "== $$script"; $(BIN)/python $$script $(ARGS) || exit 1; done

clean: ## Remove what was built, but not .venv and not results
	rm -rf site dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests docs benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
