package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestDB checks what the commands behind evosctl db say, and their exit statuses.
func TestDB(t *testing.T) {
	dir := t.TempDir()
	path, file := filepath.Join(dir, "evoslurm.db"), filepath.Join(dir, "evoslurm.yaml")
	must.OK(t, os.WriteFile(file, []byte("database: "+path+"\n"), 0o600))
	s, err := store.Open(t.Context(), path)
	must.OK(t, err)
	s.Close()
	must.OK(t, os.WriteFile(filepath.Join(dir, "bad"), []byte(strings.Repeat("text", 5000)), 0o600))
	for _, c := range []struct {
		args, want string
		status     int
	}{
		{"check", "0 jobs (0 have not ended), 0 events\nsound\n", 0},
		{"backup " + dir + "/kept", "backed up as " + dir + "/kept: ", 0},
		{"backup " + dir + "/kept", "is not overwritten", exitOther},
		{"restore " + dir + "/kept", "the old one is " + path + ".replaced-", 0},
		{"check " + dir + "/bad", "fault: it is no sound database", exitOther},
		{"check " + dir + "/none", "no such file", exitOther},
		{"restore " + dir + "/bad", "no sound database", exitOther},
		{"restore", "usage: evoslurmd db restore FILE", exitUsage},
		{"check", "sound", 0},
	} {
		var out bytes.Buffer
		cmd := command()
		cmd.SetOut(&out)
		cmd.SetArgs(append([]string{"db"}, append(strings.Fields(c.args), "--config="+file)...))
		err, status := cmd.Execute(), 0
		if err != nil {
			out.WriteString(err.Error())
			status = exitStatus(err)
		}
		if !strings.Contains(out.String(), c.want) || status != c.status {
			t.Errorf("%s: status %d, %s; want %d, %s", c.args, status, &out, c.status, c.want)
		}
	}
}
