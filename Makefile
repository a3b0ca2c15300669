# The two commands of this project. Each sets up .venv by itself; a second run starts within seconds.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
TORCH  := torch==2.13.0

.PHONY: run test lint clean help

help:
	@echo "make run    set up .venv and start the assistant on http://127.0.0.1:8765"
	@echo "make test   set up .venv and run lint, types and the whole test suite"
	@echo "make lint   ruff and mypy only"
	@echo "make clean  remove .venv"

run: $(VENV)/.run
	@$(BIN)/assistant serve $(ARGS)

test: $(VENV)/.test lint
	@$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.test
	@$(BIN)/ruff check . && $(BIN)/mypy

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/python pyproject.toml constraints.txt
	@.ci/system-packages libportaudio2
	@echo "installing the Python packages into .venv (first run only)"
	@$(BIN)/pip install --disable-pip-version-check -q $(TORCH)
	@$(BIN)/pip install --disable-pip-version-check -q -c constraints.txt -e .
	@touch $@

$(VENV)/.test: $(VENV)/.run
	@.ci/system-packages libportaudio2 chromium espeak-ng
	@$(BIN)/pip install --disable-pip-version-check -q -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV)
