package slurmctl

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParseLicenses(t *testing.T) {
	for text, want := range map[string]string{
		"": "[]", "(null)": "[]", "foo": "[{foo 1}]", "foo:2": "[{foo 2}]", "foo:1,bar": "[{bar 1} {foo 1}]", "foo:1;bar:1,foo:1": "[{bar 1} {foo 2}]",
		"matlab@srv:3": "[{matlab@srv 3}]", "foo=2": "[{foo 2}]", "foo,,bar": "[{bar 1} {foo 1}]", "foo:2147483647": "[{foo 2147483647}]",
	} {
		if got, err := ParseLicenses(text); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q is %v (%v), want %s", text, got, err, want)
		}
	}
	var many []string
	for i := range MaxLicenseNames + 1 {
		many = append(many, fmt.Sprint("l", i))
	}
	for text, words := range map[string]string{
		"foo:0": "give a number from 1", "foo:": "give a number", "foo:some": "give a number", "foo:-1": "give a number", "foo:2147483648": "give a number",
		"foo:4294967297": "give a number", "foo:2147483647,foo": "more than 2147483647", ":2": "write NAME:COUNT", "fo o": "write NAME:COUNT",
		"foo|bar": "name those that the job uses", "foo(n1)": "name those", strings.Join(many, ","): "more than 1000 licences",
	} {
		if got, err := ParseLicenses(text); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%.40q is %v (%v), want %q", text, got, err, words)
		}
	}
}

// TestLicenseStock reads forms that the recorded clusters do not have.
func TestLicenseStock(t *testing.T) {
	all, err := parseLicenseStock("LicenseName=matlab@srv Total=10 Used=2 Free=5 Reserved=0 Remote=yes LastConsumed=5 LastDeficit=3 LastUpdate=2026-11-29T09:00:00\n" +
		"LicenseName=power Total=4 Used=0 Free=4 Reserved=0 Remote=no Nodes=n[1-2] Mode=1\nLicenseName=power Total=9 Used=0 Free=9 Reserved=0 Remote=no Nodes=n[3-4] Mode=1\n" +
		"LicenseName=foo Total=2 Used=0 Free=2 Reserved=0 Remote=no\n")
	if want := "[{{foo 2} 0 false} {{matlab@srv 10} 3 false} {{power 4} 0 true}]"; err != nil || fmt.Sprint(all) != want {
		t.Errorf("%v (%v), want %s", all, err, want)
	}
	for asked, words := range map[string]string{
		"foo:2,matlab@srv:10": "", "power:100": "", "foo:3": `3 of licence "foo" are asked for, and this cluster has 2: ask for fewer`, "matlab": `no licence "matlab"`,
	} {
		want, err := ParseLicenses(asked)
		if why := LacksLicense(want, all); err != nil || (why == "") != (words == "") || !strings.Contains(why, words) {
			t.Errorf("%s: %q (%v), want %q", asked, why, err, words)
		}
	}
	if why := LacksLicense([]License{{"foo", 1}}, nil); !strings.Contains(why, `leave out "foo"`) {
		t.Error(why)
	}
	for _, out := range []string{"LicenseName=foo Total=lots\n", "LicenseName= Total=2\n"} {
		if got, err := parseLicenseStock(out); err == nil {
			t.Errorf("%q is %v", out, got)
		}
	}
	if none, err := parseLicenseStock("No licenses configured in Slurm.\n"); err != nil || len(none) != 0 {
		t.Errorf("%v (%v)", none, err)
	}
}

// TestLicensesAllocated checks that a running job has the licences that it got of a choice, as 26.05 shows them.
func TestLicensesAllocated(t *testing.T) {
	for _, got := range []string{"bar:1", "(null)"} {
		v := longView(2605, nil).withSep(recorded)
		record := strings.SplitN(read(t, "26.05", "squeue-long.txt"), "\n", 2)[0]
		fields := strings.Split(strings.TrimSuffix(record, recorded), recorded)
		at := slices.IndexFunc(v.columns, func(c column) bool { return c.long == "Licenses" })
		fields[at], fields[at+1] = "foo|bar", got
		jobs, err := v.parse(strings.Join(fields, recorded) + recorded + "\n")
		if want := map[string]string{"bar:1": "bar:1", "(null)": "foo|bar"}[got]; err != nil || len(jobs) != 1 || jobs[0].Licenses != want {
			t.Errorf("%+v (%v), want %s", jobs, err, want)
		}
	}
}

func FuzzLicenses(f *testing.F) {
	for version := range releases {
		f.Add(read(f, version, "licenses.txt"))
	}
	f.Add("LicenseName=foo Total=2 LastDeficit=99999999999 Mode=1\nfoo:2,bar@srv;baz=3")
	f.Fuzz(func(t *testing.T, text string) {
		stock, err := parseLicenseStock(text)
		if len(stock) > MaxLicenseNames || err == nil && !slices.IsSortedFunc(stock, func(a, b LicenseStock) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("%v", stock)
		}
		asked, err := ParseLicenses(text)
		for i, l := range asked {
			if err != nil || l.Count < 1 || l.Count > MostLicenses || l.Name == "" || i > 0 && asked[i-1].Name >= l.Name {
				t.Errorf("%v (%v)", asked, err)
			}
		}
		LacksLicense(asked, stock)
	})
}
