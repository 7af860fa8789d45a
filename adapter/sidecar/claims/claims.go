// Package claims reads and writes the claims of a lease (package lease) in Slurm.
//
// A claim is a reservation of one node for a minute or more in the 2060s. Slurm gives a job without a time limit a
// year, so no job meets it. A reservation without nodes would need a licence, which sites need not have.
// Its start holds the random number of the holder, its duration the beat.
package claims

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/fence"
	"github.com/evoslurm/evoslurm/adapter/sidecar/lease"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Holders is the number of random numbers that holders may have: eight years of seconds.
const Holders = 1 << 28

const (
	mostEpoch = 1e9 // one in three seconds for a century
	shortest  = 60  // seconds of a reservation: those of the beat come on top
)

// begin is the start of the claim of holder 0.
var begin = time.Date(2060, 1, 1, 0, 0, 0, 0, time.UTC)

// Name returns the name of the reservation of an epoch.
func Name(epoch int64) string { return lease.Prefix + strconv.FormatInt(epoch, 10) }

// Claims returns the claims among all reservations. Those that no sidecar can have made have no holder.
func Claims(all []slurmctl.Reservation) (claims []lease.Claim) {
	for _, r := range all {
		text, ours := strings.CutPrefix(r.Name, lease.Prefix)
		epoch, err := strconv.ParseInt(text, 10, 64)
		if !ours || err != nil || epoch <= 0 || r.Name != Name(epoch) {
			continue
		}
		c := lease.Claim{Epoch: epoch, Holder: int64(r.Start.Sub(begin) / time.Second), Beat: int64(r.End.Sub(r.Start)/time.Second) - shortest}
		if epoch > mostEpoch || c.Holder < 0 || c.Holder >= Holders || !lease.Beats(c.Beat) {
			c = lease.Claim{Epoch: epoch, Holder: lease.Nobody}
		}
		claims = append(claims, c)
	}
	return claims
}

// Top returns the highest claim of a sidecar among all reservations, or an empty one.
func Top(all []slurmctl.Reservation) (top lease.Claim) {
	for _, c := range Claims(all) {
		if c.Holder != lease.Nobody && c.Epoch > top.Epoch {
			top = c
		}
	}
	return top
}

// Span returns the start and end of the reservation of a holder's claim.
func Span(holder, beat int64) (start, end time.Time) {
	start = begin.Add(time.Duration(holder) * time.Second)
	return start, start.Add(time.Duration(shortest+beat) * time.Second)
}

// usual is the takeover that Acting supposes if this host has none.
const usual = 30 * time.Second

// Acting watches the lease for as long as a sidecar may act without a renewal, and returns its name if another host renews
// or takes it meanwhile. If there is a lease, it first calls watching.
func Acting(ctx context.Context, slurm *slurmctl.Client, takeover time.Duration, watching func(name string, d time.Duration)) (string, error) {
	hold := lease.TermsOf(cmp.Or(takeover, usual)).Hold
	var first lease.Claim
	var began time.Duration
	for {
		all, err := slurm.Reservations(ctx)
		top := Top(all)
		if err != nil || top.Epoch == 0 {
			return "", err
		}
		switch {
		case first.Epoch == 0:
			first, began = top, fence.Now()
			watching(Name(top.Epoch), hold)
		case top != first:
			return Name(top.Epoch), nil
		case fence.Now() > began+hold:
			return "", nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
