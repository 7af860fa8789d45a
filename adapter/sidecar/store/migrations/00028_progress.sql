-- +goose Up
-- What the application has reported of its progress, as JSON; '': nothing.
ALTER TABLE jobs ADD COLUMN progress TEXT NOT NULL DEFAULT '';
