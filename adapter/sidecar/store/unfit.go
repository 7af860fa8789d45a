package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

var (
	// ErrUnfit means that a database must not be used as it is, though nothing is wrong
	// with the file: a later release wrote it, or it is on a file system that several
	// machines share. To try again is of no use.
	ErrUnfit = errors.New("unfit for use")
	// ErrMalformed means that a database can never be read. What Slurm knows of the jobs
	// makes a new one.
	ErrMalformed = errors.New("malformed")
)

// sharedFileSystems holds file systems that several machines mount, by the magic number of
// statfs(2). There sqlite's write-ahead log, which needs memory that all its processes
// share, may corrupt the database, and the lease may be a lock that only one machine sees:
// NFS with local_lock, Lustre without the mount option flock.
// FUSE and 9p are missing, because most of their file systems belong to one machine.
var sharedFileSystems = map[int64]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB",
	0x5346414f: "AFS",
	0x6b414653: "AFS",
	0x73757245: "Coda",
	0x00c36400: "CephFS",
	0x7461636f: "OCFS2",
	0x0bd00bd0: "Lustre",
	0x47504653: "GPFS",
	0x19830326: "BeeGFS",
	0x01161970: "GFS2",
	0xaad7aaea: "PanFS",
}

// statfs is replaced by tests, which cannot mount these.
var statfs = syscall.Statfs

// checkPlace refuses a folder of a file system that several machines share.
func checkPlace(dir string) error {
	var st syscall.Statfs_t
	if err := statfs(dir, &st); err != nil {
		return fmt.Errorf("database folder: %w", &os.PathError{Op: "statfs", Path: dir, Err: err})
	}
	if name, shared := sharedFileSystems[int64(uint32(st.Type))]; shared {
		return fmt.Errorf("database folder %s: %w: it is on %s, which several machines share and where sqlite may corrupt a database: "+
			"set the key database to a file on a local disk, for example /var/lib/evoslurm/evoslurm.db", dir, ErrUnfit, name)
	}
	return nil
}

// MarkMalformed adds ErrMalformed to an error of reading that the file causes, not the
// circumstances.
func MarkMalformed(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrUnfit) || Refuses(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrMalformed, err)
}

// SetAside moves a malformed database out of the way, with the write-ahead log that
// belongs to it, and returns its new name.
func SetAside(path string, now time.Time) (string, error) {
	aside := path + ".malformed-" + now.UTC().Format("20060102T150405.000Z")
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(path+suffix, aside+suffix); err != nil && (suffix == "" || !errors.Is(err, os.ErrNotExist)) {
			return "", fmt.Errorf("move the malformed database aside: %w", err)
		}
	}
	return filepath.Clean(aside), nil
}

// CheckPlace returns an error if a database must not be where it is: on a file system that several machines share.
func CheckPlace(path string) error {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if err := checkPlace(dir); !errors.Is(err, os.ErrNotExist) || dir == filepath.Dir(dir) {
			return err
		}
	}
}
