package config

import (
	"strings"
	"testing"
)

// TestMayEvolve: deny wins, a user counts by name or group, and what is not known is not checked.
func TestMayEvolve(t *testing.T) {
	alice := Names{[]string{"alice"}, []string{"staff", "pilot"}, []string{"physics"}, []string{"normal"}, []string{"main"}}
	with := func(change func(n *Names)) Names {
		n := alice
		change(&n)
		return n
	}
	for name, c := range map[string]struct {
		allow, deny Names
		job         Names
		want        string // part of the reason; "": allowed
	}{
		"no lists":                    {Names{}, Names{}, alice, ""},
		"allowed user":                {Names{Users: []string{"bob", "alice"}}, Names{}, alice, ""},
		"another user is allowed":     {Names{Users: []string{"bob"}}, Names{}, alice, "user alice is not one of them (allow.users, allow.groups): submit it with sbatch"},
		"a part of a name":            {Names{Users: []string{"alic"}}, Names{}, alice, "user alice is not"},
		"allowed group":               {Names{Users: []string{"bob"}, Groups: []string{"pilot"}}, Names{}, alice, ""},
		"another group":               {Names{Groups: []string{"others"}}, Names{}, alice, "user alice is not"},
		"no group at all":             {Names{Groups: []string{"others"}}, Names{}, with(func(n *Names) { n.Groups = []string{} }), "user alice is not"},
		"groups not known":            {Names{Groups: []string{"others"}}, Names{}, with(func(n *Names) { n.Groups = nil }), ""},
		"groups not known nor needed": {Names{Users: []string{"bob"}}, Names{}, with(func(n *Names) { n.Groups = nil }), "user alice is not"},
		"user not known":              {Names{Users: []string{"bob"}}, Names{}, with(func(n *Names) { n.Users, n.Groups = nil, nil }), ""},
		"denied user, allowed group":  {Names{Groups: []string{"pilot"}}, Names{Users: []string{"alice"}}, alice, "denies evolving jobs to user alice (deny.users): submit it with sbatch"},
		"denied group, allowed user":  {Names{Users: []string{"alice"}}, Names{Groups: []string{"staff"}}, alice, "to group staff (deny.groups)"},
		"account in capitals":         {Names{Accounts: []string{"Physics"}}, Names{}, alice, ""},
		"another account":             {Names{Accounts: []string{"chemistry"}}, Names{}, alice, `only in some accounts, and account "physics" is not one of them (allow.accounts)`},
		"no account":                  {Names{Accounts: []string{"chemistry"}}, Names{}, with(func(n *Names) { n.Accounts = []string{""} }), `account "" is not`},
		"denied account":              {Names{}, Names{Accounts: []string{"PHYSICS"}}, alice, "to account physics (deny.accounts)"},
		"another QOS":                 {Names{QOS: []string{"high"}}, Names{}, alice, `only in some QOS, and QOS "normal" is not`},
		"user and QOS":                {Names{Users: []string{"alice"}, QOS: []string{"high"}}, Names{}, alice, `QOS "normal" is not`},
		"one of two partitions":       {Names{Partitions: []string{"main"}}, Names{}, with(func(n *Names) { n.Partitions = []string{"main", "debug"} }), `partition "debug" is not`},
		"denied partition of two":     {Names{}, Names{Partitions: []string{"debug"}}, with(func(n *Names) { n.Partitions = []string{"main", "debug"} }), "to partition debug (deny.partitions)"},
	} {
		cfg := Config{Allow: c.allow, Deny: c.deny}
		if err := cfg.MayEvolve(c.job); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestSettable: every settable key takes its own text again, and refuses what the file's key would.
func TestSettable(t *testing.T) {
	for _, key := range Settable() {
		text := Default().Text(key)
		if c, err := Default().With(key, text); err != nil || c.Text(key) != text {
			t.Errorf("%s: %q became %q: %v", key, text, c.Text(key), err)
		}
	}
	for _, c := range []struct{ key, text, is, fails string }{
		{"max_delay", "90s", "1m30s", ""},
		{"max_delay", "90", "", `"90"; want a length of time with its unit`},
		{"max_delay", "-1s", "", "max_delay: -1s; want 0s or more"},
		{"max_delays", "partition:debug=5m,qos:low=2h", "partition:debug=5m,qos:low=2h", ""},
		{"max_delays", "debug=5m", "", "want partition:NAME=TIME"},
		{"hold_shares.user.node_hours", "101", "", "want a percentage from 1 to 100"},
		{"hold_shares.user.node_hours", "some", "", "hold_shares.user.node_hours"},
		{"max_holds", "9999999999999999999999", "", "max_holds"},
		{"allow.users", "alice,bob", "alice,bob", ""},
		{"allow.users", "alice, bob", "", `" bob" is not a valid name`},
		{"deny.qos", "a\nb", "", "is not a valid name"},
		{"deny.accounts", strings.Repeat("a,", mostNames) + "a", "", "1001 names; want 1000 at most"},
		{"allow.accounts", strings.Repeat("a", longestName), strings.Repeat("a", longestName), ""},
		{"allow.accounts", strings.Repeat("a", longestName+1), "", "is not a valid name"},
		{"deny.groups", "", "", ""},
		{"database", "/x", "", `"database" is no key to set at run time`},
	} {
		with, err := Default().With(c.key, c.text)
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) || err == nil && with.Text(c.key) != c.is {
			t.Errorf("%s=%q: %q, %v; want %q, %q", c.key, c.text, with.Text(c.key), err, c.is, c.fails)
		}
	}
}

// FuzzSetting: no text breaks the parser, and what it takes is stable.
func FuzzSetting(f *testing.F) {
	f.Add("max_delays", "qos:a=1m")
	f.Add("allow.groups", "a,b")
	f.Fuzz(func(t *testing.T, key, text string) {
		if c, err := Default().With(key, text); err == nil {
			if again, err := Default().With(key, c.Text(key)); err != nil || again.Text(key) != c.Text(key) {
				t.Errorf("%s: %q became %q, then %q: %v", key, text, c.Text(key), again.Text(key), err)
			}
		}
	})
}
