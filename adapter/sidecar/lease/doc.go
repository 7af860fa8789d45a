// Package lease decides which of several sidecars on different hosts may act. It is pure: the caller has the
// clock, carries out the commands ([Action]), and returns what they showed ([Machine.Done]).
//
// The arbiter is Slurm itself. A [Claim] is a reservation that keeps nothing from any job. Its name has an epoch,
// and slurmctld refuses a second reservation of the same name. The claim with the highest epoch counts. Its
// holder writes another beat into it every few moments, and reads it back. The rules:
//
//   - A holder may act until [Terms].Hold after the sending of the last renewal that a later read confirmed: its
//     own claim was the highest, with the beat just written. Any other highest claim ends the right at once.
//   - Another sidecar creates the next epoch only if it saw the same claims, without a gap longer than Gap, for
//     Take, which exceeds Hold; or if the holder gave its claim up.
//   - It reads again after that, and withdraws if any claim but its own has changed: the holder renewed.
//   - It acts only when a read that it sent Gap later still shows its claim. slurmctld may be killed and begin
//     again with an older state, and by then every other sidecar has seen the claim, or begins its count again.
//   - A reservation that is only named like a claim ([Nobody]) takes its epoch, and has no other effect.
//
// Hosts compare no clocks. Each measures durations by its own clock, which is never set and goes on while the
// host sleeps. Take exceeds Hold by 30 %, far more than two such clocks drift apart. slurmctld's clock has no
// part in it. A command that Slurm carries out long after its sender gave it up does no harm: a late renewal is
// seen, a late creation is refused or has a lower epoch, and a late deletion names an old epoch.
package lease
