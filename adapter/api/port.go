package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/internal/certs"
)

// Port is a TCP address to listen at. If another process has the address, the port is waited for:
// the sidecar plans meanwhile.
type Port struct {
	Address string         // host:port or :port; "": nowhere
	Opened  []net.Listener // what systemd has opened and keeps while the sidecar is away; used in place of Address
	Files   *certs.Files   // of TLS; nil: none
	Start   Starter        // of the process that serves it; nil: this process does, in tests
	Log     logrus.FieldLogger
}

// Pauses between two tries to listen.
const (
	firstRetry   = 250 * time.Millisecond
	longestRetry = 5 * time.Second
)

// open returns the listeners, none if the address is taken. An address that can never be
// listened at is an error.
func (p Port) open() ([]net.Listener, error) {
	if len(p.Opened) > 0 || p.Address == "" {
		return p.Opened, nil
	}
	l, err := net.Listen("tcp", p.Address)
	switch {
	case err == nil:
		return []net.Listener{l}, nil
	case taken(err):
		p.Log.WithError(err).WithFields(logrus.Fields{"address": p.Address, "holder": listeners(p.Address)}).
			Warn("address is taken: trying again until it is free")
		return nil, nil
	case errors.Is(err, syscall.EACCES):
		err = fmt.Errorf("%w (ports below 1024 are for root: enable evoslurmd.socket, or set a port such as :6821)", err)
	}
	return nil, err
}

// await listens as soon as the address is free. It returns nil when ctx is done.
func (p Port) await(ctx context.Context) net.Listener {
	pause := firstRetry
	for try := 1; ; try++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		l, err := net.Listen("tcp", p.Address)
		entry := p.Log.WithField("address", p.Address)
		if err == nil {
			entry.Info("address is free: serving there")
			return l
		}
		if pause = min(2*pause, longestRetry); try&(try-1) == 0 { // less and less often
			entry.WithError(err).WithFields(logrus.Fields{"tries": try, "holder": listeners(p.Address)}).Warn("address is still taken")
		}
	}
}

// taken reports whether an address may become free: another process has it, or its interface is not
// up.
func taken(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// listeners names the users whose processes listen at the port of an address.
func listeners(address string) string {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return "unknown"
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "unknown"
	}
	var users []string
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if table, err := os.ReadFile(file); err == nil {
			users = append(users, listening(table, uint16(port))...)
		}
	}
	if len(users) == 0 {
		return "unknown"
	}
	return strings.Join(users, ", ")
}

// listening returns the listeners at a port, from one of the kernel's socket tables.
func listening(table []byte, port uint16) []string {
	const listen = "0A"
	end := fmt.Sprintf(":%04X", port)
	var users []string
	for lines := bufio.NewScanner(bytes.NewReader(table)); lines.Scan(); {
		f := strings.Fields(lines.Text()) // number, local and remote address, state, queues, timer, retransmissions, uid
		if len(f) < 8 || !strings.HasSuffix(f[1], end) || f[3] != listen {
			continue
		}
		if uid, err := strconv.ParseUint(f[7], 10, 32); err == nil {
			users = append(users, userName(uint32(uid)))
		}
	}
	return users
}
