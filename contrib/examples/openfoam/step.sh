# step.sh CASE HOSTFILE MORE: icoFoam goes on for MORE seconds of flow from the last time that is complete, on the hosts of the file.
set -e -o pipefail
cd $1
mine=$(icoFoam -help | grep -E '^(Using|Build)' | grep -o '([^)]*)' | tr -d '()' | paste -sd' ')
if [ -e complete ]; then read time wrote <complete; else time=0 wrote=$mine; fi
[ "$wrote" = "$mine" ] || { echo "$1/$time is refused: version $wrote wrote it, this is $mine"; exit 1; }
for other in [0-9]*; do [ "$(awk "BEGIN { print ($other > $time) }")" != 1 ] || rm -r $other; done # what a crash left
rm -rf processor*
end=$(awk "BEGIN { print $time + $3 }") ranks=$(awk -F= '{ n += $2 } END { print n }' $2) parallel=
for entry in "endTime $end" "writeInterval $3"; do foamDictionary -entry ${entry/ / -set } system/controlDict >log; done
[ -d constant/polyMesh ] || blockMesh >>log
if [ $ranks -gt 1 ]; then
	printf 'FoamFile { version 2.0; format ascii; class dictionary; object decomposeParDict; }
numberOfSubdomains %d; method simple; simpleCoeffs { n (%d 1 1); delta 0.001; }\n' $ranks $ranks >system/decomposeParDict
	decomposePar -latestTime >>log; parallel=-parallel
fi
date +"%T.%3N: $ranks ranks from $time"; mpiexec --hostfile $2 icoFoam $parallel >>log; date +"%T.%3N: until $end"
[ $ranks = 1 ] || reconstructPar -latestTime >>log
echo $end $mine >complete.new && mv complete.new complete
