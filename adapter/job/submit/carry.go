package submit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/job/request"
)

// A site's job_submit and cli_filter plugins may change a job's comment. If a cluster has any, the
// script also carries the request: unchanged if its own #EVO lines say everything, otherwise as an
// extra line (request.Request.ScriptLine), which sbatch itself inserts below the first line through
// its option --bbf. Everything else stays the same: the job's name, Command, arguments, and other
// lines. Without plugins, nothing is added or checked.

// carries reports whether a script carries the whole request.
func carries(script []byte, want request.Request) bool {
	given, asked, err := request.FromStored(script)
	return asked && err == nil && given.Same(want)
}

// cannotCarry returns why no line can be added to the script, or "".
func (r submission) cannotCarry() string {
	for _, name := range []string{"bb", "bbf"} {
		if o, given := r.options.last(name); given {
			return "with " + o.String() + " the request cannot be written into the script"
		}
	}
	if !r.options.has("wrap") && !takesComments(string(r.script.text)) {
		return "the script's language may not have comments that begin with #"
	}
	return ""
}

// hashLanguages are interpreters to which a line that begins with # is a comment.
var hashLanguages = regexp.MustCompile(`^([a-z]*sh|python|perl|ruby|Rscript|R|julia|tclsh|awk|gawk)[0-9.]*$`)

// takesComments reports whether a line that begins with # may follow a script's first line: one
// already does, or its interpreter is known to accept it.
func takesComments(script string) bool {
	first, rest, _ := strings.Cut(script, "\n")
	if strings.HasPrefix(rest, "#") {
		return true
	}
	words := strings.Fields(strings.TrimPrefix(first, "#!"))
	for len(words) > 0 && (filepath.Base(words[0]) == "env" || strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=")) {
		words = words[1:]
	}
	return len(words) > 0 && hashLanguages.MatchString(filepath.Base(words[0]))
}

// carry adds to a call what puts the request into the script, unless it is there already, and returns
// what removes it again once sbatch has read it.
func (r submission) carry(c *call) (done func(), err error) {
	done = func() {}
	if carries(r.script.text, c.request) {
		return done, nil
	}
	if why := r.cannotCarry(); why != "" {
		if request.HasLine(r.script.text) {
			return done, fmt.Errorf("the script has an earlier request in it, and %s: remove its line %q", why, "#EVO: …")
		}
		return done, nil
	}
	line := c.request.ScriptLine()
	if len(line)%os.Getpagesize() == 0 { // sbatch maps the file and reads up to a NUL
		line = line[:len(line)-1] + " \n"
	}
	f, err := os.CreateTemp("", "evosbatch-")
	if err == nil {
		done = func() { _ = os.Remove(f.Name()) }
		_, err = f.WriteString(line)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return done, fmt.Errorf("writing the request for the script: %w", err)
	}
	c.extra = append(c.extra, "--bbf="+f.Name())
	return done, nil
}
