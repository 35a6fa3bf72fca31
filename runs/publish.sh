#!/usr/bin/env bash
# From a finished study to the page about it: figures, tables, claims and the records themselves below docs/, and one commit.
#
#   runs/publish.sh [DIR]          of runs/paper, or of another --out of runs/paper.sh
#   runs/publish.sh DIR --no-commit
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
from=${1:-runs/paper}
runs/paper.sh --out "$from" --finish >/dev/null
rm -rf docs/study
excise study report "$from/.merged" --out docs/study --format figures --into docs/study.md
cp -r "$from/.data" docs/study/records
rm -f docs/study/summary.json
du -sh docs/study
if [ "${2:-}" != --no-commit ]; then
  git add docs/study docs/study.md
  git commit --quiet --message "The study on one machine: records, figures, tables, claims" -- docs/study docs/study.md
  git log --oneline -1
fi
