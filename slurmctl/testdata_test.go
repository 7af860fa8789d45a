package slurmctl

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files of testdata")

// recorded is the separator in testdata. These files hold what the commands of three versions
// printed. The random separators are replaced by this one, paths are shortened, and the state's
// column is removed by hand from 22.05's details. The columns of sockets, cores, and threads are added by hand.
const recorded = "<SEP>"

var releases = map[string]int{"22.05": 2205, "24.11": 2411, "26.05": 2605}

// topologies lists the topology plugins whose output was recorded.
var topologies = map[string][]string{"22.05": {"tree"}, "24.11": {"tree", "block"}}

func read(t testing.TB, version, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", version, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// withSep returns a view that reads recorded output.
func (v view) withSep(sep string) view {
	v.sep = sep
	return v
}

// TestRecorded reads recorded output of real commands and compares it with golden files, which were
// checked by eye.
func TestRecorded(t *testing.T) {
	for version, release := range releases {
		jobs := func(file string, v view) func() (any, error) {
			return func() (any, error) { return v.withSep(recorded).parse(read(t, version, file)) }
		}
		cases := map[string]func() (any, error){
			"nodes": func() (any, error) {
				nodes, parts, err := parseNodes(table{recorded, len(sinfoLetters)}, read(t, version, "sinfo.txt"))
				return map[string]any{"Nodes": nodes, "Partitions": parts}, err
			},
			"licenses":     func() (any, error) { return parseLicenseStock(read(t, version, "licenses.txt")) },
			"reservations": func() (any, error) { return parseReservations(read(t, version, "reservations.txt")) },
			"config": func() (any, error) {
				c, err := parseConfig(read(t, version, "config.txt"))
				name, uid, userErr := c.SlurmUser()
				return map[string]any{"Version": c.Version, "ClusterName": c.ClusterName, "Expansion": c.Has("permit_job_expansion"),
					"Select": c.SelectType(), "Accounting": c.AccountingStorageType(), "Prolog": c.List("PrologFlags"),
					"Munge": c.MungeSocket(), "KillWait": c.KillWait(), "MinJobAge": c.MinJobAge(), "SlurmUser": name, "SlurmUID": uid,
					"SlurmUserError": userErr, "Values": len(c.Values)}, err
			},
		}
		if release >= longFormat {
			cases["jobs"] = jobs("squeue-long.txt", longView(release, nil))
			cases["jobs-all"] = jobs("squeue-long-all.txt", longView(release, nil))
		} else {
			cases["jobs"] = jobs("squeue-short.txt", shortView())
			cases["jobs-all"] = jobs("squeue-short-all.txt", shortView())
			cases["jobs-details"] = jobs("squeue-long-all.txt", longView(release, detailOnly))
		}
		for _, plugin := range topologies[version] {
			cases["topology-"+plugin] = func() (any, error) { return parseTopology(read(t, version, "topology-"+plugin+".txt")) }
		}
		for name, parse := range cases {
			t.Run(version+"/"+name, func(t *testing.T) {
				got, err := parse()
				if err != nil {
					t.Fatal(err)
				}
				golden(t, filepath.Join("testdata", version, name+".golden.json"), got)
			})
		}
	}
}

// golden compares a value, written as JSON, with a file.
func golden(t *testing.T, path string, got any) {
	t.Helper()
	text, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(text) {
		t.Errorf("%s differs; now:\n%s", path, firstDifference(string(want), string(text)))
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return "want " + w[i] + "\ngot  " + g[i]
		}
	}
	return "one is longer than the other"
}
