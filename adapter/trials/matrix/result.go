package matrix

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Outcome is how an operation went.
type Outcome string

// The outcomes. Refused: Slurm's command said no, in the words of Text. Failed:
// what was seen is not what it should be. Unreached: an operation before it, on
// which it builds, did not pass.
const (
	Passed    Outcome = "passed"
	Refused   Outcome = "refused"
	Failed    Outcome = "failed"
	Unreached Outcome = "not reached"
)

// The outcomes in the table of accounts: whether jobs grow and shrink in the drive mode beside a sidecar that runs as the
// account, which is the Operation. Text tells what it cannot do.
const (
	Yes Outcome = "yes"
	No  Outcome = "no"
)

// OfAccounts reports whether a result belongs to the table of accounts.
func (r Result) OfAccounts() bool { return r.Outcome == Yes || r.Outcome == No }

// Result is one operation on one Slurm.
type Result struct {
	Slurm     string  `json:"slurm"`  // version, e.g. "22.05.8"
	Select    string  `json:"select"` // plugin, e.g. "cons_tres"
	Drive     string  `json:"drive"`  // drive mode, or "commands" where no sidecar takes part
	Operation string  `json:"operation"`
	Outcome   Outcome `json:"outcome"`
	Text      string  `json:"text,omitempty"` // why not
}

// Read reads results, one JSON object a line.
func Read(r io.Reader) ([]Result, error) {
	var all []Result
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var one Result
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return all, fmt.Errorf("result %d: %w", len(all)+1, err)
		}
		all = append(all, one)
	}
	return all, lines.Err()
}

type column struct{ slurm, plugin string }

type row struct{ drive, operation string }

// WriteTable writes the results as a table in Markdown: a row for each operation
// of each drive mode, in the order of the results, a column for each version and
// select plugin, and below it what Slurm said where something did not pass. The
// operations' column has the heading what.
func WriteTable(w io.Writer, what string, results []Result) error {
	cells := map[row]map[column]Result{}
	var rows []row
	var columns []column
	for _, r := range results {
		at, in := row{r.Drive, r.Operation}, column{r.Slurm, r.Select}
		if cells[at] == nil {
			cells[at] = map[column]Result{}
			rows = append(rows, at)
		}
		if !slices.Contains(columns, in) {
			columns = append(columns, in)
		}
		cells[at][in] = r
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Compare(firstOf(results, a.drive), firstOf(results, b.drive))
	})
	slices.SortFunc(columns, func(a, b column) int {
		return cmp.Or(cmp.Compare(a.slurm, b.slurm), cmp.Compare(a.plugin, b.plugin))
	})
	var b strings.Builder
	fmt.Fprintf(&b, "| drive mode | %s |", what)
	for _, c := range columns {
		fmt.Fprintf(&b, " %s %s |", c.slurm, c.plugin)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(columns)) + "\n")
	var notes []string
	for _, at := range rows {
		fmt.Fprintf(&b, "| %s | %s |", at.drive, at.operation)
		for _, in := range columns {
			r, tried := cells[at][in]
			switch {
			case !tried:
				b.WriteString(" – |")
			case r.Text == "":
				fmt.Fprintf(&b, " %s |", r.Outcome)
			default:
				n := slices.Index(notes, r.Text) + 1
				if n == 0 {
					notes = append(notes, r.Text)
					n = len(notes)
				}
				shown := "**" + r.Outcome + "**"
				if r.Outcome == Yes {
					shown = r.Outcome
				}
				fmt.Fprintf(&b, " %s (%d) |", shown, n)
			}
		}
		b.WriteByte('\n')
	}
	for i, text := range notes {
		fmt.Fprintf(&b, "\n%d. %s", i+1, text)
	}
	if len(notes) > 0 {
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// firstOf returns where a drive mode first occurs.
func firstOf(results []Result, drive string) int {
	return slices.IndexFunc(results, func(r Result) bool { return r.Drive == drive })
}
