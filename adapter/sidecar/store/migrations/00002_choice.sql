-- +goose Up

-- The strategy that an operator has put in use. There is no row while that is the
-- configuration's.
CREATE TABLE choice (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    strategy   TEXT    NOT NULL,
    parameters TEXT    NOT NULL, -- JSON
    by         TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    instead    TEXT    NOT NULL  -- what the configuration had at that time
) STRICT;
