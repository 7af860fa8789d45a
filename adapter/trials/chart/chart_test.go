package chart

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var (
	helm    = flag.String("chart.helm", "", "the command helm")
	rewrite = flag.Bool("rewrite", false, "write what the chart renders into testdata")
)

const folder = "../../../contrib/helm/evoslurm"

// TestRendered holds what the chart renders to testdata, and the sidecar's configuration in it to what the sidecar takes.
func TestRendered(t *testing.T) {
	for _, name := range []string{"slurm", "munge"} {
		golden := "testdata/" + name + ".yaml"
		text, err := os.ReadFile(golden)
		if *helm != "" {
			got, rendered := exec.CommandContext(t.Context(), *helm, "template", "evoslurm", folder, "--namespace=slurm", "--values=testdata/"+name+".values.yaml").Output()
			if rendered != nil {
				t.Fatal(rendered)
			}
			if *rewrite {
				err, text = os.WriteFile(golden, got, 0o644), got
			}
			if diff := cmp.Diff(string(text), string(got)); diff != "" {
				t.Errorf("%s (-golden +rendered):\n%s", name, diff)
			}
		}
		must.OK(t, err)
		judge(t, name, objects(t, text))
	}
}

// judge checks the objects that the chart renders.
func judge(t *testing.T, name string, all map[string]object) {
	file := filepath.Join(t.TempDir(), "evoslurm.yaml")
	must.OK(t, os.WriteFile(file, []byte(all["ConfigMap"].Data["evoslurm.yaml"]), 0o600))
	t.Setenv("EVOSLURM_CONFIG", file)
	cfg, _, err := config.Load(pflag.NewFlagSet("", pflag.ContinueOnError))
	if err != nil || cfg.Database != "/var/lib/evoslurm/evoslurm.db" || cfg.Listen.TCP == "" {
		t.Errorf("%s: its configuration is %+v: %v", name, cfg.Listen, err)
	}
	if want := map[string]config.Auth{"slurm": config.AuthJWT, "munge": config.AuthMunge}[name]; cfg.Auth != want {
		t.Errorf("%s: callers prove who they are by %s", name, cfg.Auth)
	}
	d := all["Deployment"].Spec
	if d.Replicas != 1 || d.Strategy.Type != "Recreate" {
		t.Errorf("%s: %d replicas, %s: two sidecars may run at once", name, d.Replicas, d.Strategy.Type)
	}
	pod := d.Template.Spec
	for _, c := range append(pod.Containers, pod.InitContainers...) {
		if s := c.SecurityContext; !s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation || len(s.Capabilities.Drop) != 1 {
			t.Errorf("%s: %s has %+v", name, c.Name, s)
		}
	}
	if !pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.RunAsUser == 0 {
		t.Errorf("%s: the pod may run as root", name)
	}
}

// object has what the test looks at in an object of Kubernetes.
type object struct {
	Kind string
	Data map[string]string
	Spec struct {
		Replicas int
		Strategy struct{ Type string }
		Template struct {
			Spec struct {
				SecurityContext struct {
					RunAsNonRoot bool `yaml:"runAsNonRoot"`
					RunAsUser    int  `yaml:"runAsUser"`
				} `yaml:"securityContext"`
				Containers     []container
				InitContainers []container `yaml:"initContainers"`
			}
		}
	}
}

type container struct {
	Name            string
	SecurityContext struct {
		AllowPrivilegeEscalation bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct{ Drop []string }
	} `yaml:"securityContext"`
}

func objects(t *testing.T, text []byte) map[string]object {
	all, in := map[string]object{}, yaml.NewDecoder(bytes.NewReader(text))
	for {
		var o object
		err := in.Decode(&o)
		if err == io.EOF {
			return all
		}
		must.OK(t, err)
		all[o.Kind] = o
	}
}

// TestVersion: the chart is of the version that the packages have.
func TestVersion(t *testing.T) {
	version := must.Read(t, "../../../VERSION")
	text, err := os.ReadFile(folder + "/Chart.yaml")
	var chart struct{ Version, AppVersion string } // yaml wants names in lower case
	if err = errors.Join(err, yaml.Unmarshal(bytes.ToLower(text), &chart)); err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(version)); chart.Version != want || chart.AppVersion != want {
		t.Errorf("the chart is %s, the file VERSION has %s", chart.Version, want)
	}
}

// TestRefused: values that the chart does not know, or that cannot be, are refused by name.
func TestRefused(t *testing.T) {
	if *helm == "" {
		t.Skip("make chart")
	}
	for set, named := range map[string]string{
		"replicas=2":                   "replicas",
		"slurm.auth=none":              "/slurm/auth",
		"slurm.auth=munge":             "/slurm/munge/secret",
		"slurm.uid=0":                  "/slurm/uid",
		"slurm.controller=A_B":         "/slurm/controller",
		"service.port=341":             "/service/port",
		"service.port=6822":            "/service/port",
		"persistence.size=lots":        "/persistence/size",
		"config.database=/tmp/x":       "/config/database",
		"image.repo=x":                 "repo",
		"serviceMonitor.interval=soon": "/serviceMonitor/interval",
	} {
		out, err := exec.CommandContext(t.Context(), *helm, "template", "evoslurm", folder, "--set="+set).CombinedOutput()
		if err == nil || !strings.Contains(string(out), named) {
			t.Errorf("--set %s: %v\n%s", set, err, out)
		}
	}
}
