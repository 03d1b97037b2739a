#!/bin/sh
# Writes the locks of the image: every package with the digests of its files, for the Python of the Dockerfile.
# Wants uv. What is locked stays as it is while it still fits; to renew it: sh k8s/image/lock.sh --upgrade
set -eu
cd "$(dirname "$0")/../.."
lock() {
  from=$1 to=$2
  shift 2
  uv pip compile "$from" --quiet --generate-hashes --no-annotate --no-header --python-version 3.11 \
    --python-platform x86_64-manylinux_2_28 --output-file "k8s/image/$to" "$@"
}
lock pyproject.toml runtime.lock "$@"
lock k8s/image/build.in build.lock "$@"
# Its engine is declared by nobody who uses it: requirements-local.txt says why.
lock requirements-local.txt local.lock --no-deps "$@"
