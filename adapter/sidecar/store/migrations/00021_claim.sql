-- +goose Up
-- How many nodes a job may have at once, growing on demand; 0: it has no claim.
ALTER TABLE jobs ADD COLUMN claim INTEGER NOT NULL DEFAULT 0;
