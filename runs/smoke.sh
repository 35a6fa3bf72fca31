#!/usr/bin/env bash
# The published study in a few minutes, to see that every part of it works here: too few trials to conclude anything from.
exec "$(dirname "$0")/paper.sh" --out runs/paper-smoke --minutes "${1:-5}" --blocks 2
