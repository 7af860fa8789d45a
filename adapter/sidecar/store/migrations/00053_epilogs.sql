-- +goose Up

-- How long jobs of a partition are COMPLETING, as the sidecar has learnt: the plan counts on it.
CREATE TABLE epilogs (
    partition TEXT PRIMARY KEY,
    seconds   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE epilogs;
