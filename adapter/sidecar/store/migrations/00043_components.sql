-- +goose Up

-- The components of a job of coupled codes, with their nodes in each step and the nodes that each has, as JSON; "": none.
ALTER TABLE jobs ADD COLUMN components TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE jobs DROP COLUMN components;
