# `make help` lists the commands. Two do everything on a fresh machine: `make demo` and `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
PY := .venv/bin/python
UV := .venv/bin/uv

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

venv: .venv/.done ## the development environment in .venv
.venv/.done: requirements/dev.txt operator/pyproject.toml parser_patch/pyproject.toml localcluster/pyproject.toml
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11) and "GemmaServe needs Python 3.11 or newer as python3; found " + sys.version.split()[0])'
	@echo "==> development environment (.venv)"
	test -x $(PY) || python3 -m venv .venv
	test -x $(UV) || .venv/bin/pip install --quiet "$$(grep ^uv== requirements/dev.in)"
	VIRTUAL_ENV=.venv $(UV) pip sync --quiet requirements/dev.txt
	VIRTUAL_ENV=.venv $(UV) pip install --quiet --no-deps --no-build-isolation -e operator -e parser_patch -e localcluster
	@touch $@

lock: ## lock Python dependencies (hashed) after an edit of a .in or pyproject.toml
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-package gemmaserve-operator --no-emit-package gemmaserve-parser --no-emit-package localcluster requirements/dev.in -o requirements/dev.txt
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header operator/pyproject.toml -o operator/requirements.txt -c requirements/dev.txt

.PHONY: help venv lock
