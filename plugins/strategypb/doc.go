// Package strategypb is the Go code of ../proto/strategy.proto, the contract
// between Evoslurm and strategies that run as processes of their own.
package strategypb

//go:generate sh ../proto/generate.sh
