package submit

import (
	"strings"
	"testing"
)

func TestOwnerOf(t *testing.T) {
	for _, c := range []struct {
		words, environ string
		want           owner
	}{
		{"job.sh", "", byScript},
		{"-N 2 --profile=energy --dry-run job.sh", "", byScript},
		{"job.sh --profile=2@10m", "", byScript}, // the script's own argument
		{"job.sh", "EVOSBATCH_GRACE=10s EVOSBATCH_DRIVE=merge EVOSBATCH_PROFILE=", byScript},
		{"job.sh", "EVOSBATCH_MALLEABLE=2-4", evosbatch},
		{"--profile=2@10m job.sh", "", evosbatch},
		{"--profile=nonsense job.sh", "", evosbatch},
		{"--on-grow=x job.sh", "", evosbatch},
		{"--require-profile job.sh", "", evosbatch},
		{"-V", "", evosbatch},
		{"--help", "", evosbatch},
		{"--nonsense job.sh", "", stock},
		{"--nonsense job.sh --profile=2@10m", "", evosbatch},
		{"--nonsense", "EVOSBATCH_PROFILE=2@10m", evosbatch},
	} {
		line, bad := newOptionTable().read(strings.Fields(c.words), func() string { return "" })
		if got := ownerOf(line, bad, strings.Fields(c.words), strings.Fields(c.environ)); got != c.want {
			t.Errorf("%q with %q: %d, want %d", c.words, c.environ, got, c.want)
		}
	}
}
