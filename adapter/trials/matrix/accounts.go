package matrix

import (
	"fmt"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
)

// A Query is a way to ask how much a job has used.
type Query string

// The queries, as docs/accounting.md names them.
const (
	Sacct   Query = "`sacct -X`"
	Sreport Query = "`sreport`"
	XDMoD   Query = "XDMoD"
	Seff    Query = "`seff`"
	// Fairshare is not in the table: it depends on how steps and PriorityCalcPeriod meet.
	Fairshare Query = "fair share"
)

// Queries lists the queries in the order of the table.
var Queries = []Query{Sacct, Sreport, XDMoD, Seff}

// Accounted holds, by Slurm version and drive mode, which percentage of a job's node-seconds each query counts. The job
// has 1, 4, and 2 nodes, for the same time each. TestAccounting measures them.
var Accounted = map[string]map[drivemode.Mode]map[Query]int{
	"22.05": {
		drivemode.Merge:     {Sacct: 100, Sreport: 100, XDMoD: 28, Seff: 14},
		drivemode.Companion: {Sacct: 100, Sreport: 100, XDMoD: 57, Seff: 86},
		drivemode.Chain:     {Sacct: 100, Sreport: 100, XDMoD: 100, Seff: 100},
	},
	"24.11": {
		drivemode.Merge:     {Sacct: 157, Sreport: 157, XDMoD: 86, Seff: 14},
		drivemode.Companion: {Sacct: 114, Sreport: 114, XDMoD: 71, Seff: 86},
		drivemode.Chain:     {Sacct: 100, Sreport: 100, XDMoD: 100, Seff: 100},
	},
}

// accountedFor is how many percentage points a measurement may differ: Slurm counts in whole seconds.
const accountedFor = 9

// AccountsTable returns the table of docs/accounting.md.
func AccountsTable() string {
	var b strings.Builder
	b.WriteString("| Slurm | drive mode |")
	for _, q := range Queries {
		fmt.Fprintf(&b, " %s |", q)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(Queries)) + "\n")
	for _, r := range Releases {
		for _, mode := range []drivemode.Mode{drivemode.Merge, drivemode.Companion, drivemode.Chain} {
			of := Accounted[r.Slurm][mode]
			if of == nil {
				continue
			}
			fmt.Fprintf(&b, "| %s | %s |", r.Slurm, mode)
			for _, q := range Queries {
				fmt.Fprintf(&b, " %d %% |", of[q])
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}
