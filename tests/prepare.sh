#!/usr/bin/env bash
# What the tests need beyond Python packages: Chromium and PostgreSQL from Debian's packages, kube-apiserver, etcd,
# kube-controller-manager, helm and the JobSet operator built with Go.
# Where one of them cannot be had, the tests that need it are skipped with a clear line.
set -u
cd "$(dirname "$0")/.."
# $1: package, $2: which tests need it
install_package() {
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing $1 for the $2 tests"
    { apt-get update && apt-get install -y --no-install-recommends "$1"; } >"/tmp/kaiweb-apt-$1.log" 2>&1 \
      || echo "$1 could not be installed (see /tmp/kaiweb-apt-$1.log): the $2 tests will be skipped"
  else
    echo "no $1 and no apt as root: the $2 tests will be skipped"
  fi
}
command -v "${CHROMIUM:-chromium}" >/dev/null || install_package chromium browser
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || install_package postgresql PostgreSQL
if command -v go >/dev/null; then
  .venv/bin/python -m tests.real_cluster.build || echo "kube-apiserver could not be built: its tests will be skipped"
  .venv/bin/python -m tests.real_cluster.operators.programs || echo "JobSet could not be built: its test will be skipped"
else
  echo "no Go: the tests against a real kube-apiserver will be skipped"
fi
