-- +goose Up
-- The last changes of the request (evosctl update, grow, shrink): ID:STEP, with spaces between.
ALTER TABLE jobs ADD COLUMN changes TEXT NOT NULL DEFAULT '';
-- When that made the request of a job that waits larger: it comes behind those submitted before.
ALTER TABLE jobs ADD COLUMN behind INTEGER NOT NULL DEFAULT 0;
