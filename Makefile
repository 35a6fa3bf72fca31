# Two commands do everything: `make study` and `make test`. Both set up what they need first.
SHELL := /bin/bash
PYTHON ?= python3
UV_VERSION := 0.13.8
UV := .tools/bin/uv
BIN := .venv/bin
AGENT := excise/agent/excise-agent
OUT ?= runs/smoke
export UV_SYSTEM_CERTS := true

.PHONY: study test test-lab setup lint types unit contract docs bench fuzz soak sdk-matrix format lock clean

study: .venv/ready $(AGENT)
	@$(BIN)/excise study run --preset smoke --out $(OUT)

test: .venv/ready $(AGENT)
	@scripts/check

test-lab: .venv/ready $(AGENT)
	@scripts/check-lab

setup: .venv/ready $(AGENT)
	@echo "ready: . .venv/bin/activate && excise doctor"

$(UV):
	@$(PYTHON) -m venv .tools
	@.tools/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

.venv/ready: requirements.lock pyproject.toml hatch_build.py | $(UV)
	@test -x $(BIN)/python || $(UV) venv --quiet --python '>=3.11' .venv
	@$(UV) pip sync --quiet --require-hashes --python $(BIN)/python requirements.lock
	@$(UV) pip install --quiet --no-deps --python $(BIN)/python --editable .
	@touch $@

$(AGENT): native/build $(wildcard native/*.[ch] native/*.inc)
	@native/build

lint: .venv/ready
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: .venv/ready
	@$(BIN)/mypy

unit contract: .venv/ready $(AGENT)
	@$(BIN)/pytest -q tests/$@

docs: .venv/ready
	@$(BIN)/mkdocs build --quiet --strict

bench: .venv/ready $(AGENT)
	@$(BIN)/python -m bench --all

sdk-matrix: .venv/ready $(AGENT)
	@$(BIN)/python scripts/sdk_matrix.py $(PARTS)

fuzz:
	@scripts/fuzz $(or $(FUZZ_SECONDS),300)

# 500 kills at random, then 64 owners for 4 minutes: some 15 minutes, as root. EXCISE_SOAK_SEED repeats a run.
soak: .venv/ready $(AGENT)
	@EXCISE_SOAK_KILLS=500 EXCISE_SOAK_OWNERS=64 EXCISE_SOAK_SECONDS=240 $(BIN)/pytest -q tests/soak

format: .venv/ready
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format --quiet .

lock: | $(UV)
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-index-url --all-extras --group dev pyproject.toml --output-file requirements.lock

clean:
	@rm -rf .venv .tools site dist build runs/*/ $(AGENT)
