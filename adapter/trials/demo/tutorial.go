package demo

import (
	"fmt"
	"strings"
)

// Lesson is one command of the tutorial.
type Lesson struct {
	Before  string // what is said before it
	Command string // as it is typed
	After   string // what the user should see
	Shows   string // a regular expression that its output matches
}

// Lessons are the tutorial: from a first evolving job to a changed strategy. It is for
// a cluster of 8 nodes on which nothing else runs.
var Lessons = []Lesson{
	{
		Before:  "first.sh (cat first.sh) asks for 2 nodes for three minutes, 4 for two, then 1 for one: its\nline #EVO --profile=2@3m,4@2m,1@1m. Submit it as you would with sbatch:",
		Command: "evosbatch first.sh",
		After:   "It starts at once; 2 further nodes are held for the minute in which they are due.",
		Shows:   `Submitted batch job \d+`,
	},
	{
		Before:  "A second job begins with 5 nodes, can then do with 1, and needs 7 at its end. Within the\nthree minutes of the first job's first step:",
		Command: "evosbatch --job-name=second --time=20 --profile=1@20s,5@20s,1@20s,7@1m first.sh",
		After:   "It waits: 5 nodes are free now, but 7 not so soon after, and a growth that is planned has\nits nodes when its time comes.",
		Shows:   `Submitted batch job \d+`,
	},
	{
		Before:  "What is planned, and what changes next:",
		Command: "evosqueue --gantt",
		After:   "Solid is what was, pale what is planned. evosqueue alone prints a table.",
		Shows:   `(?s)first.*second`,
	},
	{
		Before:  "The second job could begin now if it might keep its 1 node for longer while it waits for\nthe 7. What would a strategy that expands steps make of the queue? Nothing changes by asking:",
		Command: "evosctl strategy try infX",
		After:   "infX is Klein and Pérez's: steps are expanded without a bound (up to the job's --time).",
		Shows:   `1 of the 1 queued evolving jobs would be planned otherwise`,
	},
	{
		Before:  "Change the strategy, while jobs run, as an operator (you are one here):",
		Command: "evosctl strategy use infX",
		After:   "Now the second job runs, too: look at evosqueue. evosctl events 2 tells what happened to\nit; evosctl strategy use --configured goes back.",
		Shows:   `State: +in use, since .* the configuration has noX`,
	},
}

// Tutorial returns the text of the lessons.
func Tutorial() string {
	var b strings.Builder
	b.WriteString("Five commands, to be typed in `evosdemo shell` (make play), whose cluster has 8 nodes.\n")
	for i, l := range Lessons {
		fmt.Fprintf(&b, "\n%d. %s\n\n       %s\n\n   %s\n", i+1, strings.ReplaceAll(l.Before, "\n", "\n   "), l.Command, strings.ReplaceAll(l.After, "\n", "\n   "))
	}
	b.WriteString("\nWhat the jobs print is in first-1.out and second-2.out. `exit` takes everything down.\n")
	return b.String()
}
