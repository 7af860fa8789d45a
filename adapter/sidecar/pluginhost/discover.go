package pluginhost

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/confine"
	"github.com/evoslurm/evoslurm/adapter/internal/strict"
	sdk "github.com/evoslurm/evoslurm/plugins/strategy"
)

// file is an executable in the folder of strategies.
type file struct {
	name    string // of the strategy: the file's, without an extension
	path    string
	refused string // why it is not used; "" if it is
}

// scan lists the executables in the folder. A folder that does not exist is empty.
func scan(dir string) ([]file, error) {
	if dir == "" {
		return nil, nil
	}
	if err := strict.Path(dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []file
	seen := map[string]string{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		st, err := os.Stat(path)
		if err != nil || !st.Mode().IsRegular() || st.Mode().Perm()&0o111 == 0 || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		f := file{name: strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())), path: path}
		switch {
		case !sdk.ValidName(f.name):
			f.refused = "its file's name must be lower-case letters, digits, - and _"
		case seen[f.name] != "":
			f.refused = "there is " + seen[f.name] + " of the same name"
		default:
			if err := strict.Path(path); err != nil {
				f.refused = err.Error()
			}
		}
		seen[f.name] = e.Name()
		files = append(files, f)
	}
	return files, nil
}

// sum returns a file's SHA-256 in hexadecimal.
func sum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sharedAccount replaces config.PluginUser if that account does not exist.
const sharedAccount = "nobody"

// lookupUser is replaced by tests.
var lookupUser = user.Lookup

// runAs returns the identity of plugins; nil for the sidecar's own.
func runAs(name string, log *logrus.Logger) (*identity, error) {
	if os.Geteuid() != 0 || name == "" {
		return nil, nil
	}
	u, err := lookupUser(name)
	if errors.As(err, new(user.UnknownUserError)) && name == config.PluginUser {
		log.Warnf("the account %s does not exist: plugins run as %s, whose other processes may interfere with them; systemd-sysusers or \"useradd --system %[1]s\" makes it", name, sharedAccount)
		u, err = lookupUser(sharedAccount)
	}
	if err != nil {
		return nil, err
	}
	who, err := confine.Credential(u)
	if err != nil {
		return nil, err
	}
	return &identity{who.Uid, who.Gid}, nil
}

var joining sync.Mutex

// join adds this process to the group of plugins, whose sockets it must reach: root's capabilities
// may be limited, see CapabilityBoundingSet in the unit.
func join(gid int) error {
	joining.Lock()
	defer joining.Unlock()
	groups, err := syscall.Getgroups()
	if err != nil || slices.Contains(groups, gid) || os.Getegid() == gid {
		return err
	}
	if err := syscall.Setgroups(append(groups, gid)); err != nil {
		return fmt.Errorf("join group %d: %w", gid, err)
	}
	return nil
}
