package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/cmd/internal/complete"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

const accessHelp = `%s
evosbatch refuses other jobs before they are submitted, and the sidecar does not drive
them: after give_up, the site's policy for such jobs applies (undriven). A job that runs
keeps what is planned. A job that waits is refused as soon as the lists keep it out, and
adopted once they let it in, while it is still parked.

If an allow list has names, all others are kept out. A job must be in the list of each
kind that has one; users and groups are one kind. Deny lists win. A change counts at
once, also after restarts, until --configured, or until the configuration's own list
changes. The event log names the operator. Only operators may do this.`

// kinds are the kinds of names, by flag.
var kinds = []struct{ flag, kind, help string }{
	{"user", "users", "users, with commas between them"}, {"group", "groups", "groups of the operating system"}, {"account", "accounts", "accounts"},
	{"qos", "qos", "qualities of service"}, {"partition", "partitions", "partitions; a job of several needs all of them"},
}

// newAccess is allow or deny.
func newAccess(list string) *cobra.Command {
	short := map[string]string{"allow": "Say who may have evolving jobs (operators)", "deny": "Say who may not have evolving jobs (operators)"}[list]
	var remove, configured, show bool
	names := map[string]*[]string{}
	cmd := &cobra.Command{
		Use:     list + " {[--remove] [--user=NAMES] [--group=NAMES] [--account=NAMES] [--qos=NAMES] [--partition=NAMES] | --list | --configured}",
		Short:   short,
		Long:    fmt.Sprintf(accessHelp, strings.TrimSuffix(short, " (operators)")+"."),
		Example: "  evosctl " + list + " --group=pilot --partition=batch\n  evosctl " + list + " --remove --user=alice",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := accessRequest(list, names, remove, configured, show)
			if err != nil {
				return err
			}
			return ask(cmd, func(c *api.Client, ctx context.Context) (api.Settings, error) {
				if show {
					all, err := c.Settings(ctx)
					return only(all, list+"."), err
				}
				return c.ChangeSettings(ctx, r)
			}, func(w io.Writer, all api.Settings) {
				showSettings(w, all)
				for _, s := range all.Settings {
					if added := r.Add[s.Key]; list == "allow" && len(added) > 0 && s.Value == strings.Join(added, ",") {
						fmt.Fprintf(w, "%s was empty: from now on it keeps all others out.\n", s.Key)
					}
				}
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	for _, k := range kinds {
		names[k.kind] = flags.StringSlice(k.flag, nil, k.help)
	}
	flags.BoolVar(&remove, "remove", false, "take the names off the list")
	flags.BoolVar(&configured, "configured", false, "use the configuration's lists again")
	flags.BoolVar(&show, "list", false, "show the lists")
	flags.Bool("json", false, "write the lists as JSON")
	complete.Flags(cmd, map[string]func(context.Context) []string{"partition": complete.Partitions, "account": complete.Accounts})
	return cmd
}

// accessRequest returns the change that the flags ask for.
func accessRequest(list string, names map[string]*[]string, remove, configured, show bool) (r api.SettingsRequest, err error) {
	lists, given := map[string][]string{}, 0
	for _, k := range kinds {
		if r.Configured = append(r.Configured, list+"."+k.kind); len(*names[k.kind]) > 0 {
			lists[list+"."+k.kind] = *names[k.kind]
			given = 1
		}
	}
	for _, other := range []bool{configured, show} {
		if other {
			given += 2
		}
	}
	switch {
	case given == 0:
		return r, errors.New("whom? Name them with --user, --group, --account, --qos, or --partition; or say --list or --configured")
	case given > 2 || given == 2 && remove:
		return r, errors.New("--list and --configured go with no names, not with --remove, and not together")
	case configured:
		return r, nil
	}
	if r.Configured = nil; remove {
		r.Remove = lists
	} else {
		r.Add = lists
	}
	return r, nil
}

// only keeps the settings and warnings of keys with a prefix.
func only(all api.Settings, prefix string) api.Settings {
	kept := api.Settings{Settings: []api.Setting{}, Warnings: []string{}}
	for _, s := range all.Settings {
		if strings.HasPrefix(s.Key, prefix) {
			kept.Settings = append(kept.Settings, s)
		}
	}
	for _, w := range all.Warnings {
		if strings.HasPrefix(w, prefix) {
			kept.Warnings = append(kept.Warnings, w)
		}
	}
	return kept
}

// settings reports what operators have set at run time, and names in the lists that do not exist. Only operators
// may read either.
func (d *doctor) settings(ctx context.Context, client *api.Client) {
	all, err := client.Settings(ctx)
	if err != nil {
		return
	}
	var set []string
	for _, s := range all.Settings {
		if d.users = append(d.users, s.By); strings.HasSuffix(s.Key, ".users") {
			d.users = append(d.users, config.ListOf(s.Value)...)
		}
		if s.Value != s.Configured {
			set = append(set, fmt.Sprintf("%s=%s by %s", s.Key, legible.Cut(s.Value, widestValue, "…"), s.By))
		}
	}
	result, remedy := ok, ""
	if len(all.Warnings) > 0 {
		result, remedy = warn, "correct the names in the configuration, or with evosctl allow and deny"
	}
	if set = append(set, all.Warnings...); len(set) > 0 {
		d.add("settings", result, strings.Join(set, "; "), remedy)
	}
}

// showSettings prints settings as a table, and warnings to standard error.
func showSettings(w io.Writer, all api.Settings) {
	for _, text := range all.Warnings {
		fmt.Fprintln(os.Stderr, "evosctl: warning: "+text)
	}
	listSettings(w, all.Settings)
}

// widestValue bounds a value in a table.
const widestValue = 60

func listSettings(w io.Writer, all []api.Setting) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SETTING\tVALUE\tCONFIGURED\tSET")
	for _, s := range all {
		set := "-"
		if !s.At.IsZero() {
			set = s.At.Local().Format(time.DateTime)
		}
		if s.By != "" {
			set += " by " + s.By
		}
		value := func(text string) string {
			if text == "" {
				return "-"
			}
			return legible.Cut(text, widestValue, "…")
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", s.Key, value(s.Value), value(s.Configured), set)
	}
	t.Flush()
}
