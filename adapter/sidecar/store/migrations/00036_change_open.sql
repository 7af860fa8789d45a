-- +goose Up

-- Slurm has not confirmed the last change of the request yet: a copy of the database may say so of one that Slurm refused.
ALTER TABLE jobs ADD COLUMN change_open INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE jobs DROP COLUMN change_open;
