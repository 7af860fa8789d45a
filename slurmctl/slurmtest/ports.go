package slurmtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
)

// portRange is a range of TCP ports held for one cluster. Clusters of several processes and users
// share the machine's ports, so the range is divided into slots. The owner of a slot is the process
// bound to an abstract Unix socket with the slot's number. The kernel releases the slot when the
// supervisor ends, however it ends.
type portRange struct {
	base  int
	locks []net.Listener
}

const (
	slotPorts = 16
	firstPort = 10000
)

// reservePorts reserves n consecutive ports on which no process listens.
func reservePorts(n int) (*portRange, error) {
	slots := (lastPort() - firstPort) / slotPorts
	want := (n + slotPorts - 1) / slotPorts
	if want > slots {
		return nil, fmt.Errorf("slurmtest: %d ports asked for, %d exist below the ephemeral ones", n, slots*slotPorts)
	}
	start := rand.IntN(slots - want + 1)
	for i := 0; i <= slots-want; i++ {
		slot := (start + i) % (slots - want + 1)
		if p := tryPorts(slot, want, n); p != nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("slurmtest: no %d consecutive free ports in %d-%d", n, firstPort, lastPort())
}

func tryPorts(slot, slots, n int) *portRange {
	p := &portRange{base: firstPort + slot*slotPorts}
	for i := slot; i < slot+slots; i++ {
		l, err := net.Listen("unix", fmt.Sprintf("@slurmtest-ports-%d", firstPort+i*slotPorts))
		if err != nil {
			p.release()
			return nil
		}
		p.locks = append(p.locks, l)
	}
	for port := p.base; port < p.base+n; port++ {
		l, err := net.Listen("tcp4", fmt.Sprintf(":%d", port))
		if err != nil {
			p.release()
			return nil
		}
		l.Close()
	}
	return p
}

func (p *portRange) release() {
	for _, l := range p.locks {
		l.Close()
	}
}

// lastPort returns the first port that the kernel uses for outgoing connections: a range must end
// below it. If that leaves little room, it is ignored.
func lastPort() int {
	last := 32768
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		var low int
		if _, err := fmt.Sscan(string(b), &low); err == nil && low > firstPort+4096 {
			last = min(last, low)
		}
	}
	return last
}
