package slurmtest

import (
	"fmt"
	"testing"
)

func TestBothUsersRunJobs(t *testing.T) {
	c := Start(t, Options{})
	for _, u := range c.Users() {
		out, err := c.Run(t.Context(), u, "srun", "-N2", "id", "-u")
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%d\n%d\n", u.UID, u.UID); out != want {
			t.Errorf("srun id -u as %s prints %q, want %q", u.Name, out, want)
		}
	}
}
