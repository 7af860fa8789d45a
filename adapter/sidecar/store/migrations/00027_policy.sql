-- +goose Up

-- The malleability policy that an operator has put in use, as in choice.
CREATE TABLE policy (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    strategy   TEXT    NOT NULL, -- the policy's name
    parameters TEXT    NOT NULL, -- JSON
    by         TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    instead    TEXT    NOT NULL
) STRICT;

-- +goose Down
DROP TABLE policy;
