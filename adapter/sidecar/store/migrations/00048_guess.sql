-- +goose Up

-- The lowest step that a running job may really be in, if its step was inferred from Slurm and its application has not
-- named it yet. 0: the step is known.
ALTER TABLE jobs ADD COLUMN guess INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE jobs DROP COLUMN guess;
