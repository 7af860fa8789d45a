-- +goose Up

-- Nodes that were awake without a job, by hour of the site's clock.
CREATE TABLE idle_hours (
    hour    INTEGER PRIMARY KEY, -- its first second
    seconds REAL NOT NULL,       -- node-seconds
    joules  REAL NOT NULL        -- that these nodes drew, by the configured watts; 0 without them
) STRICT;

-- +goose Down
DROP TABLE idle_hours;
