module github.com/evoslurm/evoslurm

go 1.26
