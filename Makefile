# Needs Python >= 3.11 (with pip and venv) and GNU make; everything else goes into a virtual environment.

VENV ?= .venv
# Further requirements, to test another scikit-learn: SKLEARN='scikit-learn==1.6.*'. Several are separated by blanks.
SKLEARN ?=
# pytest-xdist's workers; 0 runs the tests in one process.
WORKERS ?= 2
PYTEST_ARGS ?=
# Options of the benchmarks: --quick, or those of `python examples/benchmarks/harness/bench.py --help` for utility.
BENCH_ARGS ?=
# The extra whose environment `make versions` shows.
EXTRA ?= test
# The first seed of `make audit-long`.
AUDIT_SEED := $(or $(AUDIT_SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))

# The first that runs and is new enough: python3.11, else python3. A PYTHON that is given is taken at its word.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
ifeq ($(origin PYTHON),undefined)
PYTHON := $(shell for p in python3.11 python3; do \
	if $$p -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then echo $$p; break; fi; done)
endif

# Windows' virtual environments have another folder for programs.
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
BENCH := examples/benchmarks/harness
REQUIREMENTS := $(foreach requirement,$(SKLEARN),'$(requirement)')
# What a virtual environment was made for; when this changes, it is made anew.
MADE_FOR := $(strip $(SKLEARN))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-onnx coverage audit-long bench bench-tables bench-report lint format dist-check workflows docs versions clean FORCE

help: ## show this text
	@echo "make TARGET [VARIABLE=value ...]"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
	  while IFS='|' read -r name text; do printf '%-12s %s\n' "$$name" "$$text"; done
	@echo "Variables: VENV=$(VENV) PYTHON=$(PYTHON) WORKERS=$(WORKERS) SKLEARN='$(SKLEARN)' PYTEST_ARGS='$(PYTEST_ARGS)'"
	@echo "Another scikit-learn: make test VENV=.venv-oldest SKLEARN='scikit-learn==1.6.*'"

demo: $(VENV)/.stamp-plot ## train private models of a census table, and draw two pictures, in a minute
	$(BIN)/python examples/demo.py

# One BLAS thread for each worker, or the workers would fight for the cores. The demo waits for no idle core either.
demo test test-all test-onnx coverage audit-long: export OMP_NUM_THREADS = 1
demo test test-all test-onnx coverage audit-long: export OPENBLAS_NUM_THREADS = 1
demo test test-all test-onnx coverage audit-long: export MKL_NUM_THREADS = 1
demo test test-all test-onnx coverage audit-long: export BLIS_NUM_THREADS = 1
demo test test-all test-onnx coverage audit-long: export VECLIB_MAXIMUM_THREADS = 1
# Without bytecode at hand, each worker compiles all tests.
test test-all coverage audit-long: export PYTHONDONTWRITEBYTECODE =
# The same quick tests each time (tests/sampling.py), or all tests of what is named.
test: $(VENV)/.stamp-test ## run the quick tests (PYTEST_ARGS=tests/tree for all tests of a package)
	$(BIN)/python -m pytest -n $(WORKERS) $(or $(PYTEST_ARGS),--sample)

test-all: $(VENV)/.stamp-test ## run all tests
	$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

# onnxruntime, MLflow and riskcal are in an environment of their own, because they bring many packages.
test-onnx: $(VENV)/.stamp-test-onnx ## run the tests that need onnxruntime, MLflow or riskcal (VENV=.venv-onnx)
	$(BIN)/python -m pytest $(or $(PYTEST_ARGS),tests/export/test_onnx.py tests/export/test_table.py tests/accounting/test_attack.py)

# The quick tests (PYTEST_ARGS=--sample) give a lower bound, and take a tenth of the time.
coverage: $(VENV)/.stamp-test ## run all tests, and require 97 % coverage of the core and 93 % of everything
	$(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report= $(PYTEST_ARGS)
	$(BIN)/python -m coverage report --fail-under=93
	$(BIN)/python -m coverage report --include='skdp/accounting/*,skdp/mechanisms/*,skdp/sensitivity/*,skdp/release/*' \
	  --fail-under=97

# Seeds are fresh, and printed, so that a failure can be looked at: make audit-long AUDIT_SEED=...
audit-long: export SKDP_AUDIT_TIMES = 10
audit-long: export SKDP_AUDIT_SEED = $(AUDIT_SEED)
audit-long: $(VENV)/.stamp-test ## run the audits with ten times the runs and fresh seeds
	@echo "AUDIT_SEED=$(AUDIT_SEED)"
	$(BIN)/python -m pytest -n $(WORKERS) --timeout=0 tests/trust -m audit $(PYTEST_ARGS)

bench: $(VENV)/.stamp-plot ## fit skdp and its peers to the same splits, and time them (BENCH_ARGS=--quick for a part)
	@echo "Utility takes about $(if $(findstring --quick,$(BENCH_ARGS)),20 minutes,four hours) on one quiet core, speed" \
	  "$(if $(findstring --quick,$(BENCH_ARGS)),5,25) minutes, growth $(if $(findstring --quick,$(BENCH_ARGS)),15,30), noise 2; stop it when you like: the next call goes on from there."
	$(BIN)/python $(BENCH)/bench.py $(BENCH_ARGS)
	$(BIN)/python $(BENCH)/speed.py $(filter --quick,$(BENCH_ARGS))
	$(BIN)/python $(BENCH)/growth.py $(filter --quick,$(BENCH_ARGS))
	$(BIN)/python $(BENCH)/noise.py
	$(BIN)/python $(BENCH)/report.py --docs docs

bench-tables: $(VENV)/.stamp-test ## fit skdp and its peers to many tables with a schema (BENCH_ARGS of bench_tables.py)
	$(BIN)/python $(BENCH)/bench_tables.py $(BENCH_ARGS)

bench-report: $(VENV)/.stamp-plot ## make the benchmark page, the picture of README and the quoted figures anew from docs/benchmarks
	$(BIN)/python $(BENCH)/report.py --docs docs

lint: $(VENV)/.stamp-lint ## check style, types and docstrings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python .ci/docstrings.py

format: $(VENV)/.stamp-lint ## sort imports, apply safe fixes and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The wheel is tried in an environment of its own, and the source distribution by its own tests.
dist-check: $(VENV)/.stamp-dist ## build the wheel and the source distribution into dist/, install one and test the other
	rm -rf dist build
	$(BIN)/python -m build --quiet
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv --clear build/wheel
	build/wheel/$(notdir $(BIN))/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd build/wheel && $(notdir $(BIN))/python -W error $(CURDIR)/.ci/first_fit.py
	mkdir build/sdist && tar -xzf dist/*.tar.gz -C build/sdist --strip-components 1
	$(MAKE) --no-print-directory -C build/sdist test

workflows: $(VENV)/.stamp-workflows ## check the workflow files and the citation against their schemas
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.readthedocs .readthedocs.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

docs: $(VENV)/.stamp-docs ## build the documentation into docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -j auto -b html -d docs/_build/doctrees docs docs/_build/html

versions: $(VENV)/.stamp-$(EXTRA) ## show which versions are in use (EXTRA=lint for the linters)
	@$(BIN)/python -VV
	@$(BIN)/python -m pip list --format=freeze --exclude-editable | grep -i -E \
	  '^(diffprivlib|dp-accounting|hypothesis|mypy|numpy|numpydoc|pandas|pytest|pytest-xdist|ruff|scikit-learn|scipy)=='

clean: ## remove the virtual environments, caches and what was built
	@for v in '$(VENV)' .venv .venv-oldest .venv-docs .venv-dist .venv-onnx .venv-bench-*; do \
	  if test -f "$$v/pyvenv.cfg"; then rm -rf "$$v"; fi; done
	rm -rf build dist skdp.egg-info docs/_build docs/generated docs/auto_examples docs/sg_execution_times.rst
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* htmlcov
	find skdp tests examples docs .ci -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The environment. Its stamp changes only when the environment is made anew.
$(VENV)/.stamp-venv: FORCE
	@if test -x '$(BIN)/python' && test "$$(cat $@ 2>/dev/null)" = "$(MADE_FOR)" && test -e $@; then exit 0; fi; \
	if test -z "$(PYTHON)" || ! $(PYTHON) -c '$(NEW_ENOUGH)'; then \
	  echo "skdp needs Python 3.11 or newer, and '$(or $(PYTHON),python3)' is not, or does not run." >&2; \
	  echo "Install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python" >&2; exit 1; \
	fi; \
	if test -d '$(VENV)' && ! test -f '$(VENV)/pyvenv.cfg' && test -n "$$(ls -A '$(VENV)')"; then \
	  echo "VENV='$(VENV)' exists and is not a virtual environment; it is left alone." >&2; exit 1; \
	fi; \
	echo "Making $(VENV) with $$($(PYTHON) -V)"; \
	$(PYTHON) -m venv --clear '$(VENV)' || { \
	  echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu it needs the package python3-venv." >&2; exit 1; }; \
	echo "$(MADE_FOR)" > $@

# skdp in place, with one extra; again whenever pyproject.toml changes.
$(VENV)/.stamp-%: pyproject.toml $(VENV)/.stamp-venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]' $(REQUIREMENTS)
	@touch $@

FORCE:
