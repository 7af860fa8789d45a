#!/bin/sh
# hour.sh lublin-256.swf >hour.json: the workload of TestHour, made with the evosim in PATH.
#
# Of the trace's jobs those that are worth a node of 16, and not longer than half an hour, come 130 times as fast. Of the hour that has a
# load of 75 % nearest an hour is made 7.5 minutes, and about a third of the jobs evolve. What is left out at the end is what
# the trace said of jobs before: they are planned by whole seconds, from second 0 on.
set -eu
if [ $# -ne 1 ]; then
	echo "usage: $0 lublin-256.swf >hour.json" >&2
	exit 2
fi
evosim trace filter --min-size=16 --min-run=60 --max-run=1800 "$1" |
	evosim trace scale --machine=16 --load=130 - |
	evosim trace cut --length=1h --load=75 - |
	evosim trace scale --time=8 - |
	evosim trace evolve --share=0.6 --shortest=15 --seed=1 --to=json - |
	awk '
		/^"header":/ { gsub(/" (Version|MaxRuntime):[^"]*",/, ""); gsub(/","/, "\", \"") }
		match($0, /"submit":[0-9]+/) {
			at = substr($0, RSTART + 9, RLENGTH - 9)
			if (first == "")
				first = at
			$0 = substr($0, 1, RSTART + 8) (at - first) substr($0, RSTART + RLENGTH)
			sub(/,"swf":\[[^]]*\]/, "")
		}
		{ print }
	'
