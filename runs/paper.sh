#!/usr/bin/env bash
# The published study: every archetype and variant that is usable here, in parts of at most an hour, gone on with where it stopped.
#
#   runs/paper.sh                  every part, then the final step
#   runs/paper.sh --minutes 25     the same in so many minutes: fewer blocks, fixed after the first one of each part
#   runs/paper.sh --part T2-1      this part alone; repeatable, over as many sittings as it takes
#   runs/paper.sh --list           the parts
#   runs/paper.sh --finish         only the final step: merge what is there, Parquet, figures, tables, claims
#
# Also: --out DIR (runs/paper), --blocks N (at most), --substrate NAME (instead of what `excise doctor` finds; repeatable).
# What is not up is not in it: lab/up docker podman gvisor kubernetes vm harnesses, and eval "$(lab/env)".
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"

# name : blocks : share of --minutes : substrates : what to run. A part without a share is left out of a short study.
PARTS=(
  "T0:100:8:main:--workload T0"
  "T1:100:8:main:--workload T1:attrs-1417"
  "T2-1:50:22:main:--workload T2:attrs-1417"
  "T2-2:50::main:--workload T2:attrs-1417"
  "K10-1:50:8:main:--workload K10:attrs-1417"
  "K10-2:50::main:--workload K10:attrs-1417"
  "K50-1:25:12:main:--workload K50:attrs-1417"
  "K50-2:25::main:--workload K50:attrs-1417"
  "K50-3:25::main:--workload K50:attrs-1417"
  "K50-4:25::main:--workload K50:attrs-1417"
  "K150-1:10:26:main:--workload K150:attrs-1417"
  "K150-2:10::main:--workload K150:attrs-1417"
  "K150-3:10::main:--workload K150:attrs-1417"
  "K150-4:10::main:--workload K150:attrs-1417"
  "K150-5:10::main:--workload K150:attrs-1417"
  "K150-6:10::main:--workload K150:attrs-1417"
  "K150-7:10::main:--workload K150:attrs-1417"
  "K150-8:10::main:--workload K150:attrs-1417"
  "K150-9:10::main:--workload K150:attrs-1417"
  "K150-10:10::main:--workload K150:attrs-1417"
  "floor:30::main:--workload T0x300"
  "emulated:10:8:emulated:--workload T0 --workload T1:attrs-1417 --workload T2:attrs-1417"
  "burst:::main:--load burst:32 --workload T0"
  "staggered:::main:--load staggered:100 --workload T0"
  "tools:30:8:tools:--workload T0 --workload K10:attrs-1417"
)
# In the order of the figures; the first of an archetype stands for it in the claims.
ORDER=(
  jail jail+pool:state=exact jail+pool+warm-interpreter:state=exact bwrap docker docker+agent podman podman+agent gvisor gvisor+agent
  kubernetes kubernetes+agent vm-uml service:on=loopback e2b:on=loopback daytona:on=loopback
)
LEFT_OUT_IF_SHORT=" bwrap podman+agent gvisor+agent "
MOST_MINUTES=60
PORT=${EXCISE_STUDY_PORT:-7977}  # the same at every sitting: it stands in the records

out=runs/paper minutes="" most="" finish=only list="" chosen=() given=()
die() { echo "runs/paper.sh: $*" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=${2:?}; shift ;;
    --minutes) minutes=${2:?}; shift ;;
    --blocks) most=${2:?}; shift ;;
    --part) chosen+=("${2:?}"); shift ;;
    --substrate) given+=("${2:?}"); shift ;;
    --finish) finish=alone ;;
    --list) list=yes ;;
    *) die "no option $1; see the top of this file" ;;
  esac
  shift
done
[[ -z $minutes || $minutes =~ ^[0-9]+$ ]] || die "--minutes takes whole minutes, not $minutes"

names() { for part in "${PARTS[@]}"; do echo "${part%%:*}"; done; }
if [ -n "$list" ]; then names; exit; fi
for name in "${chosen[@]}"; do names | grep -qxF -- "$name" || die "no part $name; see --list"; done

service=""
# shellcheck disable=SC2317  # the trap calls it
stop_service() { [ -z "$service" ] || { kill "$service" 2>/dev/null; wait "$service" 2>/dev/null; } || true; }
trap stop_service EXIT

# Our own service on this machine, for the rows that go through its doors.
start_service() {
  mkdir -p "$out"
  rm -rf "$out/.service"
  excise serve --substrate jail --egress --port "$PORT" --state "$out/.service" --no-tax --log error >"$out/.service.said" &
  service=$!
  for _ in $(seq 200); do
    if grep -q "^# ready" "$out/.service.said"; then
      eval "$(grep '^export ' "$out/.service.said")"
      return
    fi
    kill -0 "$service" 2>/dev/null || break
    sleep 0.1
  done
  echo "runs/paper.sh: the service did not start; going on without it" >&2
}

# What is usable, by the names of ORDER first; virtual machines in emulation and tools stand apart.
usable=() emulated=() tools=()
find_substrates() {
  local found name base
  if [ ${#given[@]} -gt 0 ]; then usable=("${given[@]}"); return; fi
  found=" $(excise doctor --json | python3 -c '
import json, sys
print(*(row["name"] for row in json.load(sys.stdin)["substrates"] if row["usable"]))') "
  for name in "${ORDER[@]}"; do
    base=${name%%:*}
    [[ -z $minutes || $LEFT_OUT_IF_SHORT != *" $base "* ]] || continue
    case $name in
      *:on=loopback) [ -n "${EXCISE_URL:-}" ] && usable+=("$name") ;;
      *) if [[ $found == *" $base "* ]]; then usable+=("$name"); fi ;;
    esac
  done
  for name in $found; do
    case $name in
      vm-uml*) ;;
      vm*) emulated+=("$name") ;;
      *@*) tools+=("$name") ;;
    esac
  done
}

# The flags for the substrates of a group; nothing where there are none of it.
substrates_of() {
  local name flags=()
  case $1 in
    main) for name in "${usable[@]}"; do flags+=(--substrate "$name"); done ;;
    emulated)
      [ ${#emulated[@]} -gt 0 ] || return 0
      for name in "${emulated[@]}"; do flags+=(--substrate "$name"); done
      for name in "${usable[@]}"; do  # what the paper compares them with
        case $name in docker | kubernetes | e2b:*) flags+=(--substrate "$name") ;; esac
      done ;;
    tools)
      [ ${#tools[@]} -gt 0 ] || return 0
      for name in "${tools[@]}"; do flags+=(--substrate "$name"); done
      for name in "${usable[@]}"; do
        case $name in docker) flags+=(--substrate "$name") ;; esac
      done ;;
  esac
  echo "${flags[@]}"
}

# One part, from where it is; a part that breaks off does not keep the others from being run.
run_part() {
  local name=$1 blocks=$2 share=$3 group=$4 what=$5 flags where="$out/$1"
  if [ -f "$where/study.json" ]; then
    excise study run --out "$where" --json >/dev/null
    return
  fi
  flags=$(substrates_of "$group")
  [ -n "$flags" ] || { echo "== $name: nothing of it is usable here"; return 0; }
  echo "== $name"
  local how=(--forgiving --preset paper --warm-ups 1)  # a guest without a network has no T2
  [ -z "$minutes" ] || how=(--forgiving --preset smoke --warm-ups 0)
  if [[ $what == --load* ]]; then
    # shellcheck disable=SC2086  # words
    excise study run --out "$where" --forgiving $flags $what --json >/dev/null
    return
  fi
  [ -z "$most" ] || blocks=$((most < blocks ? most : blocks))
  local time=$MOST_MINUTES
  # a fifth is for what stands around the trials: images, tasks, the burst, the report
  [ -z "$minutes" ] || time=$(python3 -c "print($minutes * $share / 125)")
  # shellcheck disable=SC2086
  excise study run --out "$where" "${how[@]}" --blocks "$blocks" --minutes "$time" $flags $what --json >/dev/null
}

run_parts() {
  local part name blocks share group what broken=()
  if [[ ${given[*]-}" ${ORDER[*]}" == *loopback* ]]; then start_service; fi
  find_substrates
  echo "substrates: bare ${usable[*]} ${emulated[*]-} ${tools[*]-}"
  for part in "${PARTS[@]}"; do
    IFS=: read -r name blocks share group what <<<"$part"
    if [ ${#chosen[@]} -gt 0 ]; then
      [[ " ${chosen[*]} " == *" $name "* ]] || continue
    elif [ -n "$minutes" ] && [ -z "$share" ] && [ "$name" != burst ]; then
      continue
    fi
    run_part "$name" "${blocks:-1}" "${share:-5}" "$group" "$what" || broken+=("$name")
  done
  [ ${#broken[@]} -eq 0 ] || { echo "runs/paper.sh: broke off: ${broken[*]}; run it again to go on" >&2; return 1; }
}

# One study of all parts that there are, its records as Parquet, and its report.
finish() {
  local parts=("$out"/*/study.json)
  [ -f "${parts[0]}" ] || die "$out has no part yet"
  parts=("${parts[@]%/study.json}")
  rm -rf "$out/.merged" "$out/.data"
  if [ ${#parts[@]} -gt 1 ]; then
    excise study merge "${parts[@]}" --out "$out/.merged"
  else
    cp -r "${parts[0]}" "$out/.merged"
  fi
  excise study export "$out/.merged" --out "$out/.data"
  excise study report "$out/.merged"
}

failed=0
if [ "$finish" != alone ]; then run_parts || failed=1; fi
if [ ${#chosen[@]} -eq 0 ] || [ "$finish" = alone ]; then finish; fi
exit "$failed"
