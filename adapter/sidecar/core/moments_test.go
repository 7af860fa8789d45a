package core

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestClockComparisons holds that decisions compare times with the clock only by the methods of msg.Moments, which
// note when the decision may differ. An exception needs a reason in clockCompared.
func TestClockComparisons(t *testing.T) {
	files, err := filepath.Glob("*/*.go")
	if err != nil || len(files) < 100 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	used := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "msg/") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			decl, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := f.Name.Name + "." + decl.Name.Name
			ast.Inspect(decl, func(n ast.Node) bool {
				if !comparesClock(n) {
					return true
				}
				if used[name] = true; clockCompared[name] == "" {
					t.Errorf("%s: %s compares a time with the clock: use a method of msg.Moments, or give a reason here", fset.Position(n.Pos()), name)
				}
				return true
			})
		}
	}
	for name := range clockCompared {
		if !used[name] {
			t.Errorf("%s compares no time with the clock any more: remove it here", name)
		}
	}
}

// comparesClock reports whether a node compares a time with the clock: by an operator, by a method of time.Time, or
// as the greater or smaller of both.
func comparesClock(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		ops := []token.Token{token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ}
		return slices.Contains(ops, n.Op) && (isClock(n.X) || isClock(n.Y))
	case *ast.CallExpr:
		of, name := called(n)
		clock := slices.ContainsFunc(n.Args, isClock)
		switch name {
		case "max", "min", "Later":
			return clock
		case "Before", "After", "Compare", "Sub":
			_, at := selected(of)
			return (clock || isClock(of)) && at != "Touched" // core.still looks at that
		}
	}
	return false
}

// isClock reports whether an expression is the time of the step or of the poll, or computed from one.
func isClock(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "now"
	case *ast.SelectorExpr:
		of, name := selected(e)
		return of != "time" && slices.Contains([]string{"Now", "now", "Taken", "Second"}, name)
	case *ast.ParenExpr:
		return isClock(e.X)
	case *ast.BinaryExpr:
		return isClock(e.X) || isClock(e.Y)
	case *ast.CallExpr:
		of, name := called(e)
		computes := slices.Contains([]string{"Unix", "Add", "Sub", "Seconds", "Truncate"}, name)
		return computes && of != nil && (isClock(of) || slices.ContainsFunc(e.Args, isClock))
	}
	return false
}

// called returns the name of the function that is called, and the operand if it has one.
func called(call *ast.CallExpr) (of ast.Expr, name string) {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return nil, f.Name
	case *ast.SelectorExpr:
		return f.X, f.Sel.Name
	}
	return nil, ""
}

// selected returns the names in an expression like c.Now.
func selected(e ast.Expr) (of, name string) {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	if x, ok := s.X.(*ast.Ident); ok {
		of = x.Name
	}
	return of, s.Sel.Name
}

// clockCompared lists the functions that compare the clock otherwise, and why that is sound.
var clockCompared = reasons(map[string]string{
	"it measures, for a log, an event or the user": `delay.Measure hold.delaysNow follow.followSuspension hold.Overrun slurm.SettleLimits
		state.SettleIntent`,
	"it sets times when something has happened": `act.bring act.ExpanderLimit adopt.Recovered follow.notConfigured follow.recordAllocation slurm.LearnEpilogs refit.refitted hold.createHold
		state.AgesFrom slurm.WatchPriorities slurm.Explain slurm.RulesSince state.NotInFuture follow.startedAt`,
	"Slurm removes reservations that are over": "act.LongestLimit",
	"an action has failed":                     "act.mayGiveUp follow.MayLeave follow.GrowthFailed state.UndoGrowth",
	"a call waits for the answer":              `refit.FitSafely refit.fitStrictly change.readyToChange change.passed view.promises change.inTheWay`,
	"it says how old the snapshot is":          "pace.Rested",
	"it says when to poll or to be called":     `act.awaitNodes pace.StartPolls talk.planSoon`,
	"a poll is older than a change":            `hold.TakeReservations hold.Confirmed`,
	"polls continue while power saving is on": `hold.SwitchNodes hold.toSwitch state.Leaves hold.watchPower power.Learn power.leaveHour power.act power.follow power.atOnce power.reportFailed power.count power.tell
		power.reservedNow power.firstUses power.Manage power.prevented lend.startParked lend.lendableOf lend.onAt`,
	"polls continue while a malleable job runs":                        "refit.lentUntil lend.withdraw",
	"polls continue while a job is not adopted, since a task is asked": "plan.MayEver",
	"polls continue while an event is muted":                           "state.UnmuteAll",
	"the value moves: Moments.Moves":                                   "slurm.agedAt",
	"only a time that Moments has noted changes the result":            `act.tooFar act.wanted refit.prolong hold.adjusted hold.claim hold.exceeds hold.late hold.take`,
	"it notes a time before the next poll":                             "act.hasRun",
	"it plans a job again, for another reason":                         "refit.addKept",
	"the next look at delays is noted":                                 "delay.Watch delay.isHeldUp delay.giveWay",
})

// reasons returns the reason of each function.
func reasons(lists map[string]string) map[string]string {
	all := map[string]string{}
	for why, names := range lists {
		for _, name := range strings.Fields(names) {
			all[name] = why
		}
	}
	return all
}
