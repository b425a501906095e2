# The few commands a contributor needs; `make` lists them.
PYTHON ?= python
SANITIZED ?= build/sanitized
SANITIZED_TESTS = $(addprefix tests/operators/test_,segment_axis.py maximum.py reduce_max.py segment_max.py paths.py \
  segment_paths.py indices.py offsets.py unsorted_ids.py ranks.py) $(addprefix tests/bindings/test_,bad_input.py \
  bindings.py changed_arrays.py robustness.py threads.py memory.py overlap.py scalar_bits.py long_lists.py \
  rare_calls.py tensors.py) tests/models/test_onnxruntime.py tests/engines/with_jax/test_jax.py
SANITIZED_MARK ?= exhaustive or not exhaustive
SANITIZED_WITHOUT ?= torch or dask or xarray or pandas or integer-keys
MINIATURE ?= build/miniature
RACES ?= build/races
EMULATED ?= build/emulated
ARM ?= build/arm
WHEELS ?= dist
RELEASE ?= build/release
FINDINGS ?= build/findings
RUNTIMES ?=
FILE ?=
MUTANTS ?=
PAGES ?=

help:  ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

install:  ## maxops as it is here, with what developing it needs
	$(PYTHON) -m pip install ".[dev]"

test:  ## the tests, on the installed package
	$(PYTHON) -m pytest

lint:  ## formatting, ruff, mypy, pyright of what is public, generated pages, and the terms of the field
	ruff format --check .
	ruff check .
	mypy
	PYTHONPATH=src pyright --verifytypes maxops --ignoreexternal --pythonpath "$$(command -v $(PYTHON))"
	clang-format --dry-run --Werror $(wildcard native/*.cpp native/*.h native/*/*.cpp native/*/*.h)
	$(PYTHON) docs/generate.py --check
	$(PYTHON) .ci/words.py

format:  ## put the formatting right, and write the generated pages anew
	ruff format .
	ruff check --fix .
	clang-format -i $(wildcard native/*.cpp native/*.h native/*/*.cpp native/*/*.h)
	$(PYTHON) docs/generate.py

fuzz:  ## a million mutated models
	PYTHONPATH=tests $(PYTHON) tests/fuzz.py

fuzz-values:  ## words of runs, shapes and types by chance, until Ctrl-C
	PYTHONPATH=tests $(PYTHON) tests/fuzz_values.py

# A second environment with a core whose constants are two and three, so that small calls cross every boundary.
miniature:  ## every small call there is, on a miniature of each kernel
	$(PYTHON) -m venv $(MINIATURE)
	$(MINIATURE)/bin/python -m pip install -q . pytest hypothesis -C cmake.define.MAXOPS_MINIATURE=ON
	PYTHONPATH=tests $(MINIATURE)/bin/python -m exhaustive

verify:  ## run every claim, and write evidence.json and its page if something changed; `make install` first
	$(PYTHON) proofs/verify.py
	$(PYTHON) docs/generate.py

# Needs Debian's why3 cvc4 z3 ocaml libzarith-ocaml-dev.
specification:  ## the Why3 specification of SONNX's Max: its lemmas, and its program against the reference
	$(PYTHON) proofs/specification/check.py

# The newest releases, but for torch, whose newest wheels on PyPI need gigabytes of CUDA's libraries: as pinned.
findings:  ## judge the newest release of each runtime (or RUNTIMES=...), and write the ledger and the pages anew
	$(PYTHON) -m venv $(FINDINGS)
	$(FINDINGS)/bin/python -m pip install -q --upgrade ".[onnx]" -r .ci/frameworks.txt
	$(FINDINGS)/bin/python -m pip install -q --upgrade onnxruntime openvino
	$(FINDINGS)/bin/python conformance/renew.py $(RUNTIMES)
	$(PYTHON) docs/generate.py

originals:  ## suites of NumPy, PyTorch and (of checkouts in ORIGINALS) others, and programs, on maxops.compat
	$(PYTHON) -m pip install -q --group originals
	$(PYTHON) conformance/originals.py
	$(PYTHON) conformance/moved.py

real-models:  ## check, rewrite, run and judge the models in PyPI's packages, and write docs/real-models.md; two minutes
	$(PYTHON) conformance/real_models.py

coverage:  ## what tests reach of the native core and of Python; Debian's clang-19 and llvm-19, fifteen minutes
	$(PYTHON) tests/coverage_report.py $(PAGES)

mutants:  ## small changes to FILE (or, in hours, to every file), one by one: a rate for each, and what lives
	PYTHONPATH=tests $(PYTHON) -m mutants $(FILE) $(MUTANTS)

faults:  ## put faults into the product, and see that claims or the miniature's enumerations notice each; an hour
	$(PYTHON) proofs/seeded.py
	$(PYTHON) tests/breaks.py

# A second environment with a core that checks every access and every undefined operation. The interpreter is not built
# so, and is told to load the runtime first. Left out: what asks operator new for 2^62 bytes, which ends the process.
# `load`: a process looks for leaks once, after its last test.
sanitize:  ## the native tests, ONNX Runtime's and XLA's under AddressSanitizer, UBSan and LeakSanitizer
	$(PYTHON) -m venv $(SANITIZED)
	$(SANITIZED)/bin/python -m pip install -q ".[onnx]" pytest pytest-xdist hypothesis threadpoolctl numpy_quaddtype \
	  jax onnxruntime -C cmake.define.MAXOPS_SANITIZE=ON
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=leak_check_at_exit=0:quarantine_size_mb=16 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
	PYTHONPATH=tests \
	$(SANITIZED)/bin/python -m pytest -p no:cacheprovider -p helpers.sanitized -m "$(SANITIZED_MARK)" \
	  -k "not ($(SANITIZED_WITHOUT))" --dist load \
	  --deselect "tests/models/test_onnxruntime.py::test_what_a_runtime_may_answer[inputs]" \
	  $(SANITIZED_TESTS)

races:  ## calls that meet, under ThreadSanitizer, without an interpreter
	$(PYTHON) -m venv $(RACES)
	$(RACES)/bin/python -m pip install -q cmake numpy
	$(RACES)/bin/cmake -S . -B $(RACES)/build -DMAXOPS_RACES=ON -DPython_EXECUTABLE="$(abspath $(RACES))/bin/python"
	$(RACES)/bin/cmake --build $(RACES)/build --target _native --parallel
	$(RACES)/build/_native

# A second environment whose AVX-512 kernels run on emulated instructions: with the ordinary constants, then with
# miniature ones.
EMULATE = -C cmake.define.MAXOPS_EMULATE_AVX512=ON -C cmake.define.MAXOPS_ISAS=x86_64_v4
emulated:  ## the AVX-512 kernels, on a processor that need not have it
	$(PYTHON) -m venv $(EMULATED)
	g++ -std=c++17 -O1 -mavx2 -Wno-psabi -include native/testing/avx512_emulated.h \
	  native/testing/avx512_emulated_test.cpp -o $(EMULATED)/avx512_emulated_test
	$(EMULATED)/avx512_emulated_test
	$(EMULATED)/bin/python -m pip install -q . pytest pytest-xdist hypothesis rich $(EMULATE)
	$(EMULATED)/bin/python -m pytest -p no:cacheprovider -k "x86-64-v4" \
	  $(addprefix tests/operators/test_,maximum.py reduce_max.py segment_max.py runs.py sizes.py paths.py \
	  segment_paths.py indices.py offsets.py unsorted_ids.py order.py hard_cases.py)
	PYTHONPATH=tests $(EMULATED)/bin/python tests/fuzz_values.py --seconds 60
	$(EMULATED)/bin/python -m pip install -q . $(EMULATE) -C cmake.define.MAXOPS_MINIATURE=ON
	PYTHONPATH=tests $(EMULATED)/bin/python -m exhaustive --isa x86-64-v4

# A second environment with what builds and checks packages: the dependency group `release`, which only a newer pip can
# read. Of the table in .ci/wheels.py ONLY selects wheels, as in ONLY='cp311-*-x86_64', and PYTHONS who tries them.
RELEASE_TOOLS = $(PYTHON) -m venv $(RELEASE) && $(RELEASE)/bin/python -m pip install -q "pip>=25.1" && \
  $(RELEASE)/bin/python -m pip install -q --group release
ONLY ?= *
PYTHONS ?= *

wheels:  ## the wheels for x86-64 and aarch64 and the source distribution, into WHEELS
	$(RELEASE_TOOLS)
	$(RELEASE)/bin/python .ci/wheels.py build $(WHEELS) --only '$(ONLY)'

check-wheels:  ## install each wheel of WHEELS where there is no compiler, and run the tests of values
	$(RELEASE_TOOLS)
	$(RELEASE)/bin/python .ci/wheels.py check $(WHEELS) --only '$(ONLY)' --pythons '$(PYTHONS)'

arm:  ## the tests of values for aarch64, under qemu, on Debian's Python
	$(MAKE) wheels check-wheels WHEELS=$(ARM) ONLY='cp311-*-aarch64'

release-checks:  ## wheels, oldest releases, emulation, faults and mutants; hours, recorded in the evidence
	$(PYTHON) .ci/release_checks.py

release:  ## what would be uploaded as VERSION, built from its tag into dist/VERSION and checked; nothing is uploaded
	@test -n "$(VERSION)" || { echo "make release VERSION=0.2.0"; exit 2; }
	$(PYTHON) docs/generate.py --check --release
	$(PYTHON) .ci/release_checks.py --unrecorded
	$(RELEASE_TOOLS)
	$(RELEASE)/bin/python .ci/release.py $(VERSION) $(WHEELS)/$(VERSION)

DOCS_MODULES = mkdocs material mkdocstrings ruff onnx pandas maxops
DOCS_NEEDS = make install && $(PYTHON) -m pip install "pip>=25.1" && $(PYTHON) -m pip install --group docs
docs:  ## the site, into build/site
	@$(PYTHON) -c 'import sys; from importlib.util import find_spec; sys.exit(not all(map(find_spec, sys.argv[1:])))' \
	  $(DOCS_MODULES) || { echo 'make docs needs packages that are not installed: $(DOCS_NEEDS)' >&2; exit 2; }
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict
	$(PYTHON) docs/links.py build/site

bench:  ## against the other libraries that are installed, quickly
	maxops bench --quick

.PHONY: help install test lint format docs sanitize races miniature emulated arm verify coverage specification originals real-models \
  findings faults mutants wheels check-wheels release release-checks bench fuzz fuzz-values
