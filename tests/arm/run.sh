#!/usr/bin/env bash
# run.sh DIR [pytest's arguments]: the core cross-compiled for aarch64, and the tests of values under qemu.
# DIR keeps Debian's arm64 Python, the wheels that the tests need and the objects, so that a second run is short.
# Needs root, for apt-get, where qemu or the compiler are not installed. qemu says nothing about speed.
set -euo pipefail
dir=$(realpath -m "$1"); shift
top=$(cd "$(dirname "$0")/../.." && pwd)
version=3.11  # Debian bookworm's
mkdir -p "$dir"/{debs,root,site}

if ! command -v qemu-aarch64-static >/dev/null || ! command -v aarch64-linux-gnu-g++ >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends qemu-user-static g++-aarch64-linux-gnu
fi

python="$dir/root/usr/bin/python$version"
if [ ! -x "$python" ]; then
  dpkg --add-architecture arm64
  apt-get update -qq
  packages=(python$version python$version-minimal libpython$version-minimal libpython$version-stdlib libpython$version-dev
    libc6 libstdc++6 libgcc-s1 zlib1g libexpat1 libffi8 libssl3 libbz2-1.0 liblzma5 libsqlite3-0 libuuid1 libreadline8
    libtinfo6 libncursesw6)
  (cd "$dir/debs" && apt-get download -qq "${packages[@]/%/:arm64}")
  for deb in "$dir"/debs/*.deb; do dpkg -x "$deb" "$dir/root"; done
fi
if [ ! -d "$dir/site/numpy" ]; then
  python3 -m pip install -q --target "$dir/site" --only-binary=:all: --python-version $version --implementation cp \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux_2_17_aarch64 \
    numpy ml_dtypes pytest hypothesis
fi

if ! command -v cmake >/dev/null || ! command -v ninja >/dev/null; then
  python3 -m pip install -q --target "$dir/tools" cmake ninja
  export PATH="$dir/tools/bin:$PATH" PYTHONPATH="$dir/tools"
fi
include="$dir/root/usr/include"
cmake -S "$top" -B "$dir/build" -G Ninja -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_CXX_FLAGS="-I$include -I$include/python$version" \
  -DPython_EXECUTABLE="$(command -v python3)" -DPython_INCLUDE_DIR="$include/python$version" \
  -DPython_NumPy_INCLUDE_DIR="$dir/site/numpy/_core/include" -DCMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER:-}" \
  "${MAXOPS_ARM_DEFINES[@]:--DMAXOPS_MINIATURE=OFF}" >"$dir/cmake.log"
cmake --build "$dir/build"

rm -rf "$dir/site/maxops"
cp -r "$top/src/maxops" "$dir/site/"
rm -f "$dir"/site/maxops/*.so
for module in _native _limits; do
  cp "$dir"/build/$module.*.so "$dir/site/maxops/$module.cpython-${version/./}-aarch64-linux-gnu.so"
done

# Tests that start a Python of their own get this one: there is no binfmt.
cat >"$dir/python" <<WRAPPER
#!/bin/sh
exec qemu-aarch64-static -L "$dir/root" "$python" "\$@"
WRAPPER
chmod +x "$dir/python"
export PYTHONPATH="$dir/site:$top/tests" PYTHONDONTWRITEBYTECODE=1 PYTHONHOME="$dir/root/usr"
cd "$top"
"$dir/python" -c 'import platform; from maxops import _native; print(platform.machine(), _native.isas())'
exec "$dir/python" -m pytest -o addopts="" -W error -ra --strict-markers -p no:cacheprovider -q -m "not exhaustive" "$@"
