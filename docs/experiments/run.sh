# Makes the tables of docs/experiments.md again, with the evosim in PATH:
#   sh run.sh DATA_FOLDER OUT_FOLDER [evosim sweep's options, such as --workers=2]
# In DATA_FOLDER are lublin-256.swf, hpc2n-excerpt.swf, nasa-ipsc-1993.swf.gz, theta-2022.swf.gz and curie-2011.swf.gz. OUT_FOLDER comes
# to have the traces, every outcome, a table (CSV) for each declaration and all tables of the page, tables.md. What was
# interrupted goes on where it was.
set -eu
data=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2/outcomes"
cd "$2"
shift 2

# A trace that is not there yet is made of another.
trace() { # FILE FROM COMMAND OPTION…
	file=$1 from=$2 how=$3
	shift 3
	[ -e "$file" ] || evosim trace "$how" --output="$file" "$@" "$from"
}
for whole in lublin-256.swf hpc2n-excerpt.swf; do
	[ -e "$whole" ] || cp "$data/$whole" .
done
trace nasa2.swf.gz "$data/nasa-ipsc-1993.swf.gz" scale --load=2
trace theta256.swf.gz "$data/theta-2022.swf.gz" scale --machine=256
trace curie-large.swf.gz "$data/curie-2011.swf.gz" filter --ran --min-size=256
trace curie364.swf.gz curie-large.swf.gz scale --machine=364
trace curie5.swf.gz curie364.swf.gz scale --load=5

# Outcomes are in one folder: what two declarations have in common is run once.
for name in headline neighbour strategies kinds kinds-all kinds-alike whole whole-more energy fill; do
	cp "$here/$name.yaml" .
	evosim sweep --output=outcomes "$@" "$name.yaml"
	mv outcomes/results.csv "$name.csv"
done
python3 "$here/holds.py" . >holds.md
evosim esp --seeds=10 --format=json >esp.json
python3 "$here/tables.py" . >tables.md
