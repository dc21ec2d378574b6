#!/usr/bin/env bash
# What the tests need beyond Python packages: Chromium from Debian's packages, kube-apiserver and etcd built with Go.
# Where one of them cannot be had, the tests that need it are skipped with a clear line.
set -u
cd "$(dirname "$0")/.."
if ! command -v "${CHROMIUM:-chromium}" >/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing Chromium for the browser tests"
    { apt-get update && apt-get install -y --no-install-recommends chromium; } >/tmp/kaiweb-apt.log 2>&1 \
      || echo "Chromium could not be installed (see /tmp/kaiweb-apt.log): browser tests will be skipped"
  else
    echo "no Chromium and no apt as root: browser tests will be skipped"
  fi
fi
if command -v go >/dev/null; then
  .venv/bin/python -m tests.reallane.build || echo "kube-apiserver could not be built: its tests will be skipped"
else
  echo "no Go: the tests against a real kube-apiserver will be skipped"
fi
