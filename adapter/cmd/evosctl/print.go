package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// exitStatus ends evosctl with a status; what there was to say has been said.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// say prints a message for the user that the shell does not evaluate.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "evosctl: "+format+"\n", args...) }

// printJSON writes a value for programs, and for people who look at it.
func printJSON(out io.Writer, value any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}
