// Package store keeps in sqlite what the sidecar must not forget: evolving jobs, their requested
// profiles, their plans, their real allocations, the Slurm jobs that belong to them, intents
// (changes requested from Slurm and not yet settled), and an append-only event log.
//
// Slurm itself is the truth about nodes; the store is what the sidecar knows beyond it. Migrations
// are in migrations/, one file per version.
package store
