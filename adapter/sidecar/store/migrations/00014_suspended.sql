-- +goose Up
-- For how many seconds Slurm has had the job suspended, which step_started minds.
ALTER TABLE jobs ADD COLUMN suspended INTEGER NOT NULL DEFAULT 0;
