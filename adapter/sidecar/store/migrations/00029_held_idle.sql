-- +goose Up
-- Node-seconds that the job's holds kept idle from jobs that waited.
ALTER TABLE jobs ADD COLUMN held_idle INTEGER NOT NULL DEFAULT 0;
