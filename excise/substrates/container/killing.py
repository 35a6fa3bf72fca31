"""How everything that an action has started in a container is killed, without access to the engine's host.

The action's mark stands in the environment of what it started. A bash inside the container looks through
/proc, with builtins only, for processes that carry the mark, descend from one that does, or are in such a
one's session; it kills them and looks again until there are none. A process that cleared its environment,
left the session and outlived its parents escapes; if bash cannot be run, the caller kills the container.
"""

from __future__ import annotations

MARK = "EXCISE_ACTION"

SCRIPT = r"""
for ((round = 0; round < 50; round++)); do
  declare -A parent=() session=(); declare -a found=()  # parents, with lower numbers, die first
  for folder in /proc/[0-9]*; do
    pid=${folder#/proc/}
    ((pid == 1 || pid == $$)) && continue
    line=
    { IFS= read -r -d '' line < "$folder/stat"; } 2>/dev/null
    [[ -n $line ]] || continue
    set -- ${line##*) }
    [[ $1 == [ZX] ]] && continue
    parent[$pid]=$2 session[$pid]=$4
    { while IFS= read -r -d '' entry; do
      if [[ $entry == "$MARKED" ]]; then found[$pid]=1; break; fi
    done < "$folder/environ"; } 2>/dev/null
  done
  ((${#found[@]})) || exit 0
  grown=1
  while ((grown)); do
    grown=0
    for pid in "${!parent[@]}"; do
      [[ -n ${found[$pid]:-} ]] && continue
      if [[ -n ${found[${parent[$pid]}]:-} || ( ${session[$pid]} != 0 && -n ${found[${session[$pid]}]:-} ) ]]; then
        found[$pid]=1 grown=1
      fi
    done
  done
  kill -KILL "${!found[@]}" 2>/dev/null
done
exit 1
"""


def argv(token: str) -> tuple[str, ...]:
    """Kills what carries `token`; its exit code is 0 once nothing is left."""
    return ("bash", "-c", f"MARKED='{MARK}={token}'\n{SCRIPT}")
