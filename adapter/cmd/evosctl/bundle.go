package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/version"
	"github.com/evoslurm/evoslurm/adapter/internal/wholefile"
	"github.com/evoslurm/evoslurm/adapter/sidecar/recorder"
)

const bundleHelp = `Pack one file for a problem report: the sidecar's recordings (recorder in the
configuration), the configuration without secrets, the versions, and the output of
evosctl doctor. Run it as the sidecar's user on its host.

The recordings name users, jobs and nodes, as squeue does. --mask replaces users' names
and paths by user1, user2 and so on, the same everywhere. Names of accounts, jobs and
nodes stay.`

func newBundle(linked string) *cobra.Command {
	var file string
	var mask bool
	cmd := &cobra.Command{
		Use:   "bundle [-o FILE] [--mask]",
		Short: "Pack recordings, configuration and doctor's output for a problem report",
		Long:  bundleHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := config.Load(cmd.Flags())
			if err != nil {
				say("%v", err)
				return exitStatus(2)
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			now := time.Now()
			if file == "" {
				file = now.Format("evoslurm-20060102-150405.tar.gz")
			}
			b := &bundle{linked: linked, cfg: cfg, now: now}
			answers := examine(ctx, cmd.Flags())
			if mask {
				b.mask = maskOf(cfg, answers)
			}
			if err := b.collect(answers); err != nil {
				say("%v", err)
				return exitStatus(2)
			}
			if err := wholefile.Write(file, 0o600, b.pack); err != nil {
				return err
			}
			fmt.Println(file)
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "file to write (default evoslurm-DATE-TIME.tar.gz)")
	cmd.Flags().BoolVar(&mask, "mask", false, "replace users' names and paths")
	return cmd
}

// maskOf returns a mask that knows the users whom the configuration and settings name.
func maskOf(cfg config.Config, answers *report) *recorder.Mask {
	return recorder.NewMask(slices.Concat(cfg.Operators.Users, cfg.Allow.Users, cfg.Deny.Users, answers.users)...)
}

// bundle is the archive being packed.
type bundle struct {
	linked string // the version, set by the linker
	cfg    config.Config
	now    time.Time
	mask   *recorder.Mask // nil to leave names as they are
	files  []bundled
}

type bundled struct {
	name string
	text []byte
}

func (b *bundle) collect(r *report) error {
	dir := b.cfg.RecorderDir()
	recordings, err := recorder.Files(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := b.recordings(recordings); err != nil {
		return err
	}
	var answers bytes.Buffer
	r.print(&answers, false)
	settings, err := json.MarshalIndent(b.cfg.Discreet(), "", "  ")
	if err != nil {
		return err
	}
	about := fmt.Sprintf("%s\n%s %s/%s\nmade %s\n", version.Line(b.linked), runtime.Version(), runtime.GOOS, runtime.GOARCH, b.now.Format(time.RFC3339))
	if len(recordings) == 0 {
		about += "there are no recordings: recorder.mib is 0, or the sidecar has not run\n"
	}
	b.add("versions.txt", []byte(about))
	b.add("config.json", b.masked(settings))
	b.add("doctor.txt", b.masked(answers.Bytes()))
	return nil
}

func (b *bundle) add(name string, text []byte) { b.files = append(b.files, bundled{name, text}) }

func (b *bundle) masked(text []byte) []byte {
	if b.mask == nil {
		return text
	}
	return []byte(b.mask.Text(string(text)))
}

// recordings adds recordings. Those of another version, and damaged ones, cannot be masked and are
// left out.
func (b *bundle) recordings(files []string) error {
	var left []string
	texts := map[string][]byte{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err == nil && b.mask != nil {
			err = b.mask.Learn(bytes.NewReader(text), version.Of(b.linked))
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // the ring went on
		}
		if err != nil {
			left = append(left, fmt.Sprintf("%s: %v", filepath.Base(name), err))
			continue
		}
		texts[name] = text
	}
	for _, name := range files {
		text, ok := texts[name]
		if !ok {
			continue
		}
		if b.mask != nil {
			var out bytes.Buffer
			if err := b.mask.Rewrite(&out, bytes.NewReader(text), version.Of(b.linked)); err != nil {
				return err
			}
			text = out.Bytes()
		}
		b.add("recorder/"+filepath.Base(name), text)
	}
	if len(left) > 0 {
		b.add("recorder/left-out.txt", []byte(strings.Join(left, "\n")+"\n"))
	}
	return nil
}

func (b *bundle) pack(w io.Writer) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, f := range b.files {
		head := &tar.Header{Name: "evoslurm/" + f.name, Mode: 0o600, Size: int64(len(f.text)), ModTime: b.now}
		if err := t.WriteHeader(head); err != nil {
			return err
		}
		if _, err := t.Write(f.text); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}
