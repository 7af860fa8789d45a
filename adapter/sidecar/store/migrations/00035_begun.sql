-- +goose Up

-- When Slurm says that it started a job: a job that was requeued while the sidecar was down has begun again.
ALTER TABLE jobs ADD COLUMN begun INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE jobs DROP COLUMN begun;
