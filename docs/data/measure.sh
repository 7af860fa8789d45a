#!/bin/bash
# measure.sh amr AMR LEVEL, or measure.sh lammps TIMESTEPS: runs the example on one rank, and prints its size and memory over time
# (README.md has the format).
set -eu
here=$(cd "$(dirname "$0")/../../contrib/examples" && pwd)
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
echo "# contrib/examples/$1, ${*: -1}, one rank, $(date +%F), $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg) at its start"
memory() { awk '/^VmRSS/ { print $2 }' "/proc/$pid/status"; }
if [ "$1" = amr ]; then
	echo "# SECONDS CELLS KIB NODES"
	exec 3< <(cd "$at" && exec "$2" trace 1000000 "$3")
	pid=$!
	while read -r line <&3; do
		if [[ $line =~ ^iteration\ [0-9]+:\ ([0-9]+)\ cells,\ ([0-9.]+)\ s$ ]]; then
			echo "${BASH_REMATCH[2]} ${BASH_REMATCH[1]} $(memory) 1"
		fi
	done
else
	echo "# SECONDS ATOMS KIB NODES"
	touch "$at/one.trace"
	(cd "$at" && exec lmp -in "$here/lammps/deposit.lmp" -var name one -var more "$2" -log none >/dev/null) &
	pid=$!
	while read -r seconds atoms; do
		if [ -n "$atoms" ] && [ -e "/proc/$pid" ]; then echo "$seconds $atoms $(memory) 1"; fi
	done < <(tail -f --pid=$pid "$at/one.trace")
fi
