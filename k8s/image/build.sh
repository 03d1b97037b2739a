#!/bin/sh
# Makes the environment of the image: build.sh TARGET [LOCK]...
# The Dockerfile runs it, and so does a test. Nothing is compiled, and nothing comes in whose digest is not known.
set -eu
target=$1
shift
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python -m venv --without-pip "$work/tools"
python -m pip --python "$work/tools/bin/python" --quiet --disable-pip-version-check install \
  --no-deps --only-binary :all: --require-hashes --requirement "$here/build.lock"
(cd "$here/../.." && "$work/tools/bin/hatchling" build --target wheel --directory "$work/dist")

python -m venv --without-pip "$target"
into_target() {
  python -m pip --python "$target/bin/python" --quiet --disable-pip-version-check install --no-deps "$@"
}
for lock in "$here/runtime.lock" "$@"; do
  into_target --only-binary :all: --require-hashes --requirement "$lock"
done
into_target --no-index "$work"/dist/*.whl
python -m pip --python "$target/bin/python" --disable-pip-version-check check
