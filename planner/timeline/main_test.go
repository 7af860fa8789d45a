package timeline

import (
	"testing"

	"github.com/evoslurm/evoslurm/planner/internal/naive"
)

func TestMain(m *testing.M) { naive.Main(m) }
