# Sourced by `tests/run` and the commands of `tests/benchmarks` with the extras that they need: goes to the clone, and
# installs it with its dependencies in `.venv`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ -x .venv/bin/python ] || "${PYTHON:-python3}" -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check --editable ".[$1]"
