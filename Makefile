# The few commands a contributor needs; `make` lists them.
PYTHON ?= python
SANITIZED ?= build/sanitized

help:  ## what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

install:  ## maxops as it is here, with what developing it needs
	$(PYTHON) -m pip install ".[dev]"

test:  ## the tests, on the installed package
	$(PYTHON) -m pytest

lint:  ## formatting, ruff, mypy
	ruff format --check .
	ruff check .
	mypy
	clang-format --dry-run --Werror native/*.cpp native/*.h
	$(PYTHON) docs/generate.py --check

format:  ## put the formatting right, and write the generated pages anew
	ruff format .
	ruff check --fix .
	clang-format -i native/*.cpp native/*.h
	$(PYTHON) docs/generate.py

# A second environment with a core that checks every access and every undefined operation. The interpreter is
# not built so, and is told to load the runtime first; it keeps memory until it exits, which is no leak of ours.
fuzz:  ## a million mutated models
	PYTHONPATH=tests $(PYTHON) tests/fuzz.py

sanitize:  ## the native tests under AddressSanitizer and UBSan
	$(PYTHON) -m venv $(SANITIZED)
	$(SANITIZED)/bin/python -m pip install -q ".[test]" -C cmake.define.MAXOPS_SANITIZE=ON
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
	$(SANITIZED)/bin/python -m pytest -p no:cacheprovider -k "not x86-64-v2" \
	  tests/test_maximum.py tests/test_reduce_max.py tests/test_segment_max.py tests/test_bad_input.py \
	  tests/test_paths.py tests/test_segment_paths.py tests/test_indices.py tests/test_offsets.py \
	  tests/test_unsorted_ids.py

bench:  ## against the peers that are installed, quickly
	maxops bench --quick

.PHONY: help install test lint format sanitize bench fuzz
