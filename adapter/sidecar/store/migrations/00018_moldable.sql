-- +goose Up

-- The alternatives of moldable jobs. The profile that a job has at present is in profiles.
CREATE TABLE moldable (
    job          INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    alternatives TEXT    NOT NULL, -- JSON: profiles
    prefers      TEXT    NOT NULL, -- completion, waste or node-hours
    minutes      TEXT    NOT NULL, -- JSON: time limits of each
    choice       INTEGER NOT NULL, -- from 0
    fixed        INTEGER NOT NULL  -- it has started
) STRICT;

-- +goose Down
DROP TABLE moldable;
