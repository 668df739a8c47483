# Every target sets up .venv by itself; nothing is done twice.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help demo test coverage docs-test test-editors test-vllm check bench dist try-dist lock licences generate clean

BIN := .venv/bin
RUNTIME := .venv/.runtime-ready
DEV := .venv/.dev-ready
PACKAGES := server engine kernels
# What is measured; bench/README.md has the options, and the whole evaluation.
QUALITY := --threads 2 --kinds all --methods "default;known length, 8 steps;causal line alone;$\
warm start after 1 character;two at once;two in turn"

help:
	@echo "make demo   fill a hole in a file of the standard library"
	@echo "make test   run the tests"
	@echo "make docs-test  run the commands that README.md and docs/ tell"
	@echo "make test-editors  drive real VS Code, Neovim, Emacs and Helix (installs them into ~/.cache; needs apt-get)"
	@echo "make test-vllm  run the GPU engine's tests on vLLM for the CPU (installs it into .venv/vllm)"
	@echo "make coverage  run the tests, and say what of server/ and engine/ they ran"
	@echo "make check  lint, formatting, types and the import rule"
	@echo "make bench  measure, results in bench/results/"
	@echo "make dist   build the wheel and the VS Code extension into dist/ (needs Node 20)"
	@echo "make try-dist  install them in an empty home and fill a hole"
	@echo "make generate  write what follows from the settings' schema (docs, VS Code)"
	@echo "make lock   refresh requirements/*.txt (UPGRADE=1: newest versions)"
	@echo "make licences  write the tables of docs/dependencies.md"
	@echo "make clean  remove .venv and caches"

$(RUNTIME): pyproject.toml requirements/runtime.txt requirements/torch.txt scripts/venv.sh
	@scripts/venv.sh runtime

$(DEV): $(RUNTIME) requirements/dev.txt
	@scripts/venv.sh dev

demo: $(RUNTIME)
	@scripts/demo.sh

test: $(DEV)
	@$(BIN)/python -m pytest $(ARGS)

coverage: $(DEV)
	@rm -rf build/coverage
	@mkdir -p build/coverage
	@$(BIN)/python -m coverage run -m pytest --timeout 600 $(ARGS)
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report

docs-test: $(DEV)
	@$(BIN)/python -m pytest tests/docs tests/test_docs.py tests/test_docs_commands.py $(ARGS)

test-editors: $(DEV)
	@tests/editors/run.sh $(BIN)/python

test-vllm: $(DEV)
	@tests/vllm/setup.sh $(BIN)/python
	@.venv/vllm/bin/python -m pytest --timeout 900 -n 2 --dist loadscope tests/vllm $(ARGS)

check: $(DEV)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/python scripts/check_imports.py
	@$(BIN)/basedpyright $(PACKAGES)
	@$(BIN)/basedpyright --pythonplatform Windows engine/dg_engine/daemon

bench: $(DEV)
	@$(BIN)/python -m bench.latency.line --out bench/results/latency_line.md
	@mkdir -p build
	@$(BIN)/dg-lsp bench quality $(QUALITY) --cache build/quality.jsonl --json > build/quality.json
	@$(BIN)/python -m bench.quality.report build/quality.json
	@rm build/quality.jsonl

dist: $(DEV)
	@scripts/dist.sh

try-dist: dist
	@scripts/try_dist.sh

lock: $(DEV)
	@$(BIN)/python scripts/lock.py $(if $(UPGRADE),--upgrade)

licences: $(DEV)
	@$(BIN)/python scripts/licences.py

generate: $(DEV)
	@$(BIN)/python scripts/generate.py

clean:
	@rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './clients/*/node_modules/*' -prune -exec rm -rf {} +
	@rm -rf ./*.egg-info {server,engine,kernels}/*.egg-info
