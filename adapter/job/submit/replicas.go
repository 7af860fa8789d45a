package submit

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	placement "github.com/evoslurm/evoslurm/adapter/job/place"
)

// The bounds of a site's replica table, in bytes.
const (
	mostReplicas = 64 << 20
	longestRow   = 8 << 10
)

// replicasIn returns the named files that a replica table has. Each of its lines is a size in bytes or with K, M, G, or T,
// clusters with commas between, and a file's name, which may have spaces in it. Several lines of a file count together. An
// error names the line. It reads all of the table, and keeps only these files.
func replicasIn(table io.Reader, names []string) (map[string]placement.File, error) {
	limited := &io.LimitedReader{R: table, N: mostReplicas + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(nil, longestRow)
	found := map[string]placement.File{}
	number := 0
	for lines.Scan() {
		number++
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		f, err := replica(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if !slices.Contains(names, f.Name) {
			continue
		}
		other, again := found[f.Name]
		if again && other.Size != f.Size {
			return nil, fmt.Errorf("line %d: %q has %d bytes, and %d in an earlier line", number, f.Name, f.Size, other.Size)
		}
		f.On = append(other.On, f.On...)
		found[f.Name] = f
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", number+1, err)
	}
	if limited.N <= 0 {
		return nil, fmt.Errorf("line %d: the table is larger than %d MiB", number, mostReplicas>>20)
	}
	return found, nil
}

// replica reads a line of a replica table.
func replica(text string) (f placement.File, err error) {
	size, rest, _ := strings.Cut(text, " ")
	on, name, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	if f.Name = strings.TrimLeft(name, " "); f.Name == "" {
		return f, fmt.Errorf("%q: want SIZE CLUSTER[,CLUSTER…] FILE", legible.Brief(text))
	}
	if f.Size, err = parseSize(size); err != nil {
		return f, err
	}
	for cluster := range strings.SplitSeq(on, ",") {
		if !config.IsCluster(cluster) {
			return f, fmt.Errorf("%q is no cluster's name", legible.Brief(cluster))
		}
		f.On = append(f.On, cluster)
	}
	return f, nil
}

// parseSize reads a number of bytes, which may end in K, M, G, or T: powers of 1024.
func parseSize(text string) (int64, error) {
	digits, unit := text, int64(1)
	if n := len(text); n > 0 {
		if k := strings.IndexByte("KMGT", text[n-1]); k >= 0 {
			digits, unit = text[:n-1], 1<<(10*(k+1))
		}
	}
	size, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || size < 0 || size > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is no size: want bytes, or a number with K, M, G, or T", legible.Brief(text))
	}
	return size * unit, nil
}
