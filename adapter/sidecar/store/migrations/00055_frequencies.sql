-- +goose Up

-- CPU frequencies of the job's steps, between commas; '': none.
ALTER TABLE jobs ADD COLUMN frequencies TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE jobs DROP COLUMN frequencies;
