# Two commands for a newcomer: `make solve` and `make test`; `make paper` runs the paper's algorithm, `make docs` builds
# the pages, `make check-long` runs the longer studies. All set up .venv by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOGGER := src/factorfield/cli/templates/logger.toml  # what `factorfield new logger` writes

.PHONY: solve paper test check-long docs setup clean

solve: $(VENV)/.installed-run
	$(BIN)/factorfield solve heat --set nu=0.02 --set noise=0.1 --set labels=48 --set sigma=0.1 --out run.nc --plot run.png
	$(BIN)/factorfield solve $(LOGGER) --out logger.nc --plot logger.png

paper: $(VENV)/.installed-run  # the paper's model and algorithm as published, a minute
	$(BIN)/factorfield solve advection --set b=0.4 --set row=5 --method mean-field --model paper --plot paper.png

test: $(VENV)/.installed-dev
	$(BIN)/ruff check src tests benchmarks examples docs
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term

check-long: $(VENV)/.installed-dev  # hours: calibration, intervals, classical fits; a second call resumes
	$(BIN)/python benchmarks/long.py

docs: $(VENV)/.installed-docs
	$(BIN)/mkdocs build --strict --quiet
	@echo site/index.html written

setup: $(VENV)/.installed-dev

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "expected Python 3.11 or newer, received " + sys.version.split()[0] + "; try: make PYTHON=python3.11 " )'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-run: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[plot]"
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@ $(VENV)/.installed-run

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	@touch $@ $(VENV)/.installed-run

clean:
	rm -rf $(VENV) site run.nc run.png logger.nc logger.png paper.png
