package main

import (
	"testing"

	"github.com/evoslurm/evoslurm/adapter/cmd/internal/contribtest"
)

func TestCompletions(t *testing.T) { contribtest.Completions(t, command()) }
