-- +goose Up
-- The last offers to a malleable job with what it said, as JSON; '': none.
ALTER TABLE jobs ADD COLUMN offers TEXT NOT NULL DEFAULT '';
