package slurmctl

import (
	"fmt"
	"strings"
	"testing"
)

func TestTask(t *testing.T) {
	for _, c := range []struct {
		display string
		tasks   int
		want    string
	}{
		{"12", 1, "none"}, {"12_3", 1, "3"}, {"12_0", 1, "0"}, {"12_[5]", 1, "5"}, {"12_[5%2]", 1, "5"},
		{"12_[4-9]", 6, "none"}, {"12+1", 1, "none"}, {"13_3", 1, "none"}, {"12_x", 1, "none"}, {"_3", 1, "none"},
	} {
		j := Job{ID: 20, ArrayJobID: 12, ArrayTasks: c.tasks}
		if err := setDisplay(&j, []byte(c.display), nil); err != nil {
			t.Fatal(err)
		}
		got := "none"
		if n, is := j.Task(); is {
			got = fmt.Sprint(n)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.display, got, c.want)
		}
	}
}

func TestSetTasks(t *testing.T) {
	for text, want := range map[string]string{
		"N/A": "1 0", "7": "1 0", "2-200%2": "199 2", "1,3,5-9:2%4": "5 4", "[0-999999%1000]": "1000000 1000",
		"1-": "error", "9-1": "error", "1%x": "error", "0-4:0": "error", "1%4294967296": "error",
	} {
		var j Job
		got := "error"
		if err := setTasks(&j, []byte(text), nil); err == nil {
			got = fmt.Sprint(j.ArrayTasks, j.ArrayLimit)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestFirstTasks(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"1-100", 32, "1-32"}, {"0-999999", 1, "0"}, {"1,3,5-9", 4, "1,3,5-6"}, {"0-98:2", 3, "0,2,4"}, {"0-2:2,7", 3, "0,2,7"}, {"4", 9, "4"}, {"4-5,9", 2, "4-5"}, {"7-9", 0, ""},
	} {
		if got, err := FirstTasks(c.text, c.n); err != nil || got != c.want {
			t.Errorf("%d of %s: %q %v, want %q", c.n, c.text, got, err, c.want)
		}
	}
	if _, err := FirstTasks("1,x", 2); err == nil {
		t.Error("1,x was read")
	}
}

// TestManyTasks cuts the text of an array whose tasks take megabytes, and keeps its first tasks and its limit.
func TestManyTasks(t *testing.T) {
	var b strings.Builder
	b.WriteString("12_[0")
	for i := 2; i < 1_000_000; i += 2 {
		fmt.Fprint(&b, ",", i)
	}
	b.WriteString("%7]")
	var j Job
	if err := setDisplay(&j, []byte(b.String()), nil); err != nil {
		t.Fatal(err)
	}
	text, all := j.WaitingTasks()
	first, err := FirstTasks(text, 3)
	if len(j.Display) > MostTasksText+20 || all || first != "0,2,4" || err != nil || !strings.HasSuffix(j.Display, ",...%7]") {
		t.Errorf("%d bytes, all %v, first %q, %v: …%s", len(j.Display), all, first, err, j.Display[len(j.Display)-20:])
	}
	for display, want := range map[string]string{"12_[4-9,12%2]": "4-9,12 true", "12": " true", "12_[1,...]": "1 false"} {
		text, all := (&Job{Display: display}).WaitingTasks()
		if got := fmt.Sprint(text, " ", all); got != want {
			t.Errorf("%s: %s, want %s", display, got, want)
		}
	}
}

// TestTaskNames names tasks so that Slurm's commands mean them alone.
func TestTaskNames(t *testing.T) {
	var c Client
	c.tasks.see([]Job{{ID: 12, ArrayJobID: 12, ArrayTasks: 1, Display: "12_9"}, {ID: 20, ArrayJobID: 12, ArrayTasks: 1, Display: "12_3"},
		{ID: 30, ArrayJobID: 30, ArrayTasks: 4, Display: "30_[1-4]"}, {ID: 40, ArrayJobID: 40, ArrayTasks: 1, Display: "40"}})
	c.tasks.see([]Job{{ID: 20}}) // of a view with other columns; the others have ended
	c.SeeTask(50, 30, 0)
	for id, want := range map[JobID]string{12: "12_9", 20: "12_3", 30: "30", 40: "40", 50: "30_0", 60: "60"} {
		if got := c.name(id); got != want {
			t.Errorf("%d is %s, want %s", id, got, want)
		}
	}
	c.tasks.see([]Job{{ID: 20, ArrayJobID: 20, ArrayTasks: 1, Display: "20"}}) // the IDs have begun again
	if got := c.name(20); got != "20" {
		t.Errorf("another job is %s", got)
	}
	for _, bad := range []string{"", "1 NumNodes=0", "1]_", "x"} {
		if err := c.UpdateTasks(t.Context(), 12, bad, JobUpdate{Name: "x"}); err == nil || !strings.Contains(err.Error(), "invalid tasks") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestJoinTasks checks how the waiting tasks of an array are written: as squeue does, and no longer.
func TestJoinTasks(t *testing.T) {
	many := make([]uint32, 32)
	for i := range many {
		many[i] = uint32(2 * i)
	}
	for _, c := range []struct {
		numbers []uint32
		text    string
		limit   int
		want    string
	}{
		{[]uint32{2, 3, 4, 9}, "", 0, "[2-4,9]"},
		{[]uint32{2, 3, 4}, "", 10, "[2-4%10]"},
		{[]uint32{1, 2}, "3-100", 0, "[1-100]"},
		{[]uint32{1, 2}, "3,7-9", 2, "[1-3,7-9%2]"},
		{[]uint32{0, 2}, "3-99:3", 0, "[0,2,3-99:3]"},
		{nil, "33-1000000", 10, "[33-1000000%10]"},
		{[]uint32{4294967295}, "", 0, "[4294967295]"},
		{many, "64-98:2", 0, "[0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,42,...]"},
		{nil, strings.Repeat("9", 4096), 5, "[...%5]"},
	} {
		if got := JoinTasks(c.numbers, c.text, c.limit); got != c.want || len(got) > mostShown+len("[%4294967295]") {
			t.Errorf("%v, %q, %d: %s, want %s", c.numbers, c.text, c.limit, got, c.want)
		}
	}
	for number, want := range map[uint32]bool{3: false, 4: true, 9: true, 10: false, 12: true, 20: true, 22: false, 24: true, 4294967295: false} {
		if got := HasTask("4-9,12,x,20-98:4", number); got != want {
			t.Errorf("task %d: %v", number, got)
		}
	}
	if !HasTask("4,...", 7) {
		t.Error("a list that was cut may have task 7")
	}
}
