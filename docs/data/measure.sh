#!/bin/bash
# measure.sh AMR LEVEL: runs contrib/examples/amr on one rank, and prints its cells and memory over time (README.md has the format).
set -eu
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
cores=$(nproc)
echo "# contrib/examples/amr, version 1, level $2, one rank, $(date +%F), $cores cores, load $(cut -d' ' -f1 /proc/loadavg) at its start"
echo "# SECONDS CELLS KIB NODES"
exec 3< <(cd "$at" && exec "$1" trace 1000000 "$2")
pid=$!
while read -r line <&3; do
	if [[ $line =~ ^iteration\ [0-9]+:\ ([0-9]+)\ cells,\ ([0-9.]+)\ s$ ]]; then
		echo "${BASH_REMATCH[2]} ${BASH_REMATCH[1]} $(awk '/^VmRSS/ { print $2 }' /proc/$pid/status) 1"
	fi
done
