-- +goose Up

-- The features that a job's nodes should have (--prefer), if that makes it no later; "": none.
ALTER TABLE jobs ADD COLUMN prefer TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE jobs DROP COLUMN prefer;
