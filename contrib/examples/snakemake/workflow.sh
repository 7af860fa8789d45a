#!/bin/bash
# To be run where jobs are submitted; -j is how many of them at a time.
exec snakemake -j ${JOBS:-10} --cluster "evosbatch --parsable --profile={resources.profile}" "$@"
