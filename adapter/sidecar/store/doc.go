// Package store keeps what the sidecar must not forget in sqlite: evolving jobs,
// their requested profiles, their plans, what was really allocated to them, the Slurm jobs
// that belong to them, intents (changes asked of Slurm and not yet known to be
// settled) and an append-only event log.
//
// Slurm itself is the truth about nodes; the store is what the sidecar knows
// beyond it. Migrations are in migrations/, one file a version.
package store
