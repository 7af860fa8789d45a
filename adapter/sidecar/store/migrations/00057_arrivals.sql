-- +goose Up

-- How many nodes jobs that nobody planned took at once, by hour of the week: so many idle nodes stay awake for them.
CREATE TABLE arrivals (
    partition TEXT NOT NULL,
    hour      INTEGER NOT NULL,
    weeks     INTEGER NOT NULL,
    nodes     TEXT NOT NULL, -- a JSON list
    PRIMARY KEY (partition, hour)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE arrivals;
