-- +goose Up
-- Seconds for which Slurm has had the job suspended, which step_started minds.
ALTER TABLE jobs ADD COLUMN suspended INTEGER NOT NULL DEFAULT 0;
