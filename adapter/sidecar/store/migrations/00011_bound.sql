-- +goose Up

-- The nodes to which a job is bound whose Slurm comment does not tell.
CREATE TABLE bound (
    job   INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    nodes TEXT    NOT NULL
) STRICT;
