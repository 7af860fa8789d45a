package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

// maxProfile bounds a file with a profile, in bytes.
const maxProfile = 1 << 20

// profileOf returns the value of --profile. @NAME reads a file: a path if it has a slash, otherwise
// a file of the user, then of the site. Its steps are separated by newlines or commas; # begins a
// comment.
//
// auto:NAME is the profile that would have fitted the last runs of the job with that name, and is
// printed.
func (in reader) profileOf(ctx context.Context, value string) (string, error) {
	if name, auto := strings.CutPrefix(value, "auto:"); auto {
		if name == "" || in.lastRuns == nil {
			return "", fmt.Errorf("--profile=%s: want auto:NAME, the name of a job that ran (evosqueue -t all)", value)
		}
		profile, what, err := in.lastRuns(ctx, name)
		if err != nil {
			return "", fmt.Errorf("--profile=%s: %w", value, err)
		}
		fmt.Fprintf(in.stderr, "evosbatch: --profile=%s: %s\n", value, legible.Printable(what, false))
		return profile, nil
	}
	name, named := strings.CutPrefix(value, "@")
	if !named {
		return value, nil
	}
	if name == "" || strings.HasPrefix(name, ".") && !strings.Contains(name, "/") {
		return "", fmt.Errorf("--profile=%s: want @NAME or @PATH", value)
	}
	places := []string{name}
	if !strings.Contains(name, "/") {
		variables := valuesOf(in.environ)
		config := cmp.Or(variables["XDG_CONFIG_HOME"], filepath.Join(variables["HOME"], ".config"))
		places = []string{filepath.Join(config, "evoslurm/profiles", name), filepath.Join(ProfileDir, name)}
	}
	for _, place := range places {
		text, err := readProfile(place)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("--profile=%s: %w", value, err)
		}
		return text, nil
	}
	return "", fmt.Errorf("--profile=%s: there is no such profile; looked for %s", value, strings.Join(places, ", "))
}

// ProfileDir has the site's profiles.
const ProfileDir = "/etc/evoslurm/profiles"

// readProfile reads a file with a profile.
func readProfile(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxProfile {
		return "", fmt.Errorf("%s is no file with a profile", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var steps []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.Trim(line, ", \t\r\n"); line != "" {
			steps = append(steps, line)
		}
	}
	if len(steps) == 0 {
		return "", fmt.Errorf("%s has no profile in it", path)
	}
	return strings.Join(steps, ","), nil
}
