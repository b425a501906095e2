# The commands for contributors; `make` lists them.
PYTHON ?= python
SANITIZED ?= build/sanitized
SANITIZED_TESTS = $(addprefix tests/operators/test_,segment_axis.py maximum.py reduce_max.py segment_max.py paths.py \
  segment_paths.py indices.py offsets.py unsorted_ids.py) $(addprefix tests/bindings/test_,bad_input.py \
  bindings.py changed_arrays.py robustness.py threads.py memory.py overlap.py scalar_bits.py long_lists.py \
  rare_calls.py tensors.py) tests/models/test_onnxruntime.py tests/engines/with_jax/test_jax.py \
  tests/engines/with_jax/test_jax_transforms.py::test_a_mapped_call_is_its_members_one_by_one
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

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

install:  ## install maxops from this checkout, with the development dependencies
	$(PYTHON) -m pip install ".[dev]"

test:  ## run the tests on the installed package
	$(PYTHON) -m pytest

lint:  ## check formatting, ruff, mypy, public types with pyright, generated pages, and wording
	ruff format --check .
	ruff check .
	mypy
	PYTHONPATH=src pyright --verifytypes maxops --ignoreexternal --pythonpath "$$(command -v $(PYTHON))"
	clang-format --dry-run --Werror $(wildcard native/*.cpp native/*.h native/*/*.cpp native/*/*.h)
	$(PYTHON) docs/generate.py --check
	$(PYTHON) .ci/words.py

format:  ## format the code, and regenerate the generated pages
	ruff format .
	ruff check --fix .
	clang-format -i $(wildcard native/*.cpp native/*.h native/*/*.cpp native/*/*.h)
	$(PYTHON) docs/generate.py

fuzz:  ## check a million mutated models
	PYTHONPATH=tests $(PYTHON) tests/fuzz.py

fuzz-values:  ## test random values, shapes and types until Ctrl-C
	PYTHONPATH=tests $(PYTHON) tests/fuzz_values.py

# A second environment with the miniature core: its constants are very small, so that small calls cross every boundary.
miniature:  ## test every small call on a miniature of each kernel
	$(PYTHON) -m venv $(MINIATURE)
	$(MINIATURE)/bin/python -m pip install -q . pytest hypothesis -C cmake.define.MAXOPS_MINIATURE=ON
	PYTHONPATH=tests $(MINIATURE)/bin/python -m exhaustive

verify:  ## verify every claim, and update evidence.json and its page; run `make install` first
	$(PYTHON) proofs/verify.py
	$(PYTHON) docs/generate.py

# Requires the Debian packages why3, cvc4, z3, ocaml and libzarith-ocaml-dev.
specification:  ## prove the lemmas of the Why3 specification of SONNX's Max, and compare its program with the reference
	$(PYTHON) proofs/specification/check.py

# torch is pinned, because its newest wheels on PyPI require gigabytes of CUDA libraries. Other packages are the newest.
findings:  ## test the newest release of each runtime (or RUNTIMES=...), and regenerate the ledger and the pages
	$(PYTHON) -m venv $(FINDINGS)
	$(FINDINGS)/bin/python -m pip install -q --upgrade ".[onnx]" -r .ci/frameworks.txt
	$(FINDINGS)/bin/python -m pip install -q --upgrade onnxruntime openvino
	$(FINDINGS)/bin/python conformance/renew.py $(RUNTIMES)
	$(PYTHON) docs/generate.py

originals:  ## run test suites of NumPy, PyTorch and others (checkouts in ORIGINALS), and programs, on maxops.compat
	$(PYTHON) -m pip install -q --group originals
	$(PYTHON) conformance/originals.py
	$(PYTHON) conformance/moved.py

real-models:  ## check, rewrite and run the models in PyPI packages, and write docs/real-models.md; two minutes
	$(PYTHON) conformance/real_models.py

coverage:  ## measure test coverage of the native core and of Python; needs clang-19 and llvm-19, fifteen minutes
	$(PYTHON) tests/coverage_report.py $(PAGES)

mutants:  ## test small changes to FILE (or to every file, which takes hours): detection rates and undetected changes
	PYTHONPATH=tests $(PYTHON) -m mutants $(FILE) $(MUTANTS)

faults:  ## inject faults, and check that claims or the miniature's enumerations detect each; an hour
	$(PYTHON) proofs/seeded.py
	$(PYTHON) tests/breaks.py

# A second environment with a core that checks memory accesses and undefined behavior. The interpreter is not
# instrumented, so LD_PRELOAD loads the sanitizers first. A test that requests 2^62 bytes from operator new is deselected,
# because it would end the process. With `load`, each process checks for leaks once, after its last test.
sanitize:  ## run the native, ONNX Runtime and XLA tests under AddressSanitizer, UBSan and LeakSanitizer
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

races:  ## run concurrent calls under ThreadSanitizer, without an interpreter
	$(PYTHON) -m venv $(RACES)
	$(RACES)/bin/python -m pip install -q cmake numpy
	$(RACES)/bin/cmake -S . -B $(RACES)/build -DMAXOPS_RACES=ON -DPython_EXECUTABLE="$(abspath $(RACES))/bin/python"
	$(RACES)/bin/cmake --build $(RACES)/build --target _native --parallel
	$(RACES)/build/_native

# A second environment whose AVX-512 kernels use emulated instructions, first with the ordinary constants, then with
# miniature constants.
EMULATE = -C cmake.define.MAXOPS_EMULATE_AVX512=ON -C cmake.define.MAXOPS_ISAS=x86_64_v4
emulated:  ## test the AVX-512 kernels on a processor without AVX-512
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

# A second environment for building and checking packages: the dependency group `release`, which requires a newer pip.
# ONLY selects wheels of the table in .ci/wheels.py, such as ONLY='cp311-*-x86_64', and PYTHONS the versions of Python.
RELEASE_TOOLS = $(PYTHON) -m venv $(RELEASE) && $(RELEASE)/bin/python -m pip install -q "pip>=25.1" && \
  $(RELEASE)/bin/python -m pip install -q --group release
ONLY ?= *
PYTHONS ?= *

wheels:  ## build the wheels for x86-64 and aarch64 and the source distribution into WHEELS
	$(RELEASE_TOOLS)
	$(RELEASE)/bin/python .ci/wheels.py build $(WHEELS) --only '$(ONLY)'

check-wheels:  ## install each wheel of WHEELS in an environment without a compiler, and test its values
	$(RELEASE_TOOLS)
	$(RELEASE)/bin/python .ci/wheels.py check $(WHEELS) --only '$(ONLY)' --pythons '$(PYTHONS)'

arm:  ## test the values of the aarch64 wheel under qemu, on Debian's Python
	$(MAKE) wheels check-wheels WHEELS=$(ARM) ONLY='cp311-*-aarch64'

release-checks:  ## check wheels, oldest releases, emulation, faults and mutants, and record the results; hours
	$(PYTHON) .ci/release_checks.py

release:  ## build and check the files of VERSION from its tag into dist/VERSION, without uploading them
	@test -n "$(VERSION)" || { echo "make release VERSION=0.2.0"; exit 2; }
	$(PYTHON) docs/generate.py --check --release
	$(PYTHON) .ci/release_checks.py --unrecorded
	$(RELEASE_TOOLS)
	$(RELEASE)/bin/python .ci/release.py $(VERSION) $(WHEELS)/$(VERSION)

DOCS_MODULES = mkdocs material mkdocstrings ruff onnx pandas maxops
DOCS_NEEDS = make install && $(PYTHON) -m pip install "pip>=25.1" && $(PYTHON) -m pip install --group docs
docs:  ## build the site into build/site
	@$(PYTHON) -c 'import sys; from importlib.util import find_spec; sys.exit(not all(map(find_spec, sys.argv[1:])))' \
	  $(DOCS_MODULES) || { echo 'make docs needs packages that are not installed: $(DOCS_NEEDS)' >&2; exit 2; }
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict
	$(PYTHON) docs/links.py build/site

bench:  ## run a quick benchmark against the installed libraries
	maxops bench --quick

.PHONY: help install test lint format docs sanitize races miniature emulated arm verify coverage specification originals real-models \
  findings faults mutants wheels check-wheels release release-checks bench fuzz fuzz-values
