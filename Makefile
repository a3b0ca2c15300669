# The two commands of this project. Each sets up .venv by itself; a second run starts within seconds.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
TORCH  := torch==2.13.0
INSTALL := $(BIN)/pip install --disable-pip-version-check -q
NOT_INSTALLED := echo "the packages could not be installed; pip says why above. It needs the internet and room on the disk; what it has fetched is kept, so just run make again"; exit 1

NO_EARS := echo "the ears for open English have no package for this system; those that know 1,200 words are used instead"

.PHONY: run test quick lint clean help

help:
	@echo "make run    set up .venv and start the assistant on http://127.0.0.1:8765"
	@echo "make test   set up .venv and run lint, types and the whole test suite"
	@echo "make quick  the quick tests, about a minute: no browser, no GPU, no whole systems"
	@echo "make lint   ruff and mypy only"
	@echo "make clean  remove .venv"

# Ctrl-C is how it is stopped, not an error. A stop of make alone reaches only the shell, which passes it on.
run: $(VENV)/.run
	@trap 'kill $$server' INT TERM; $(BIN)/assistant serve $(ARGS) <&0 & server=$$!; wait $$server || wait $$server; \
	  case $$? in 0 | 130 | 143) ;; *) exit 1 ;; esac

# In three processes, each file in one of them, in the order of tests/conftest.py. One that crashes is not begun again,
# behind which the others may wait for ever: the run ends red and names the test.
test: $(VENV)/.test lint
	@$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --max-worker-restart 0 $(ARGS)

quick: $(VENV)/.test
	@$(BIN)/python -m pytest --ignore tests/system -m "not slow and not browser and not gpu" $(ARGS)

lint: $(VENV)/.test
	@$(BIN)/ruff check . && $(BIN)/mypy --num-workers 2

# pip is the last thing that an environment gets; one that was broken off is made again.
$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed, and $(PYTHON) is $$($(PYTHON) --version 2>&1); run: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

# With an NVIDIA driver Triton builds kernels at the first start, with a C compiler and Python's headers.
SYSTEM := libportaudio2 $(if $(wildcard /dev/nvidiactl /dev/dxg),gcc python3-dev)
$(VENV)/.run: $(BIN)/pip pyproject.toml constraints.txt
	@.ci/system-packages $(SYSTEM)
	@echo "installing the Python packages into .venv: once, some minutes, 1.3 GB (on Linux several more if torch brings CUDA)"
	@$(INSTALL) $(TORCH) && $(INSTALL) -c constraints.txt -e . || { $(NOT_INSTALLED); }
	@$(INSTALL) -c constraints.txt -e '.[ears]' || { $(NO_EARS); }
	@touch $@

# Each call of pip builds this package anew, and would compile for half a minute what no test imports.
$(VENV)/.test: $(BIN)/pip pyproject.toml constraints.txt
	@.ci/system-packages $(SYSTEM) chromium espeak-ng
	@echo "installing the Python packages and what the tests need into .venv: once, some minutes"
	@$(INSTALL) --no-compile $(TORCH) && $(INSTALL) --no-compile -c constraints.txt -e '.[ears,dev]' || { $(NOT_INSTALLED); }
	@touch $(VENV)/.run $@

clean:
	rm -rf $(VENV)
