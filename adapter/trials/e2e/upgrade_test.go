package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// upgraded runs the packages' scripts with an /etc and a /var/lib of their own.
const upgraded = `set -e
mkdir -p "$1/etc" "$1/lib" "$1/share/evoslurm"
cp -a /etc/. "$1/etc"
rm -rf "$1/etc/systemd/system/evoslurmd.service.d"
sed -i '/^evoslurm:/d' "$1/etc/passwd" "$1/etc/group"
cp contrib/systemd/root.conf "$1/share/evoslurm"
mount --bind "$1/etc" /etc
mount --bind "$1/lib" /var/lib
mount --bind "$1/share" /usr/share
dropins=/etc/systemd/system/evoslurmd.service.d
eval "$2"
sh contrib/packages/postinstall configure 0.0.1
getent passwd evoslurm evoslurm-plugin >/dev/null || echo no accounts
if cmp -s contrib/systemd/root.conf $dropins/root.conf; then echo root; fi
sh contrib/packages/postremove purge
ls -d $dropins /var/lib/evoslurm 2>/dev/null || true
`

// TestUpgradeFromRoot: after an upgrade, a sidecar that was root goes on as root. Any other has the account of the unit.
func TestUpgradeFromRoot(t *testing.T) {
	for name, c := range map[string]struct{ before, want string }{
		"first installation": {"true", ""},
		"was root":           {"mkdir /var/lib/evoslurm", "root"},
		"had the account":    {"mkdir /var/lib/evoslurm; chown 1 /var/lib/evoslurm", ""},
		"observed":           {"mkdir -p /var/lib/evoslurm $dropins; cp contrib/systemd/observe.conf $dropins", "/etc/systemd/system/evoslurmd.service.d"},
	} {
		t.Run(name, func(t *testing.T) {
			top, err := filepath.Abs("../../..")
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("unshare", "--mount", "sh", "-c", upgraded, "sh", t.TempDir(), c.before)
			cmd.Dir, cmd.Stderr = top, os.Stderr
			out, err := cmd.Output()
			if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
				t.Errorf("%v: %q, want %q", err, got, c.want)
			}
		})
	}
}
