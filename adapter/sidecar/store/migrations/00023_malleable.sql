-- +goose Up

-- What malleable jobs take beyond their profiles, which have the smallest size of each step.
CREATE TABLE malleable (
    job     INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    most    TEXT    NOT NULL, -- JSON: most nodes of each step
    sizes   TEXT    NOT NULL, -- any, pow2, multiple:K
    grace   INTEGER NOT NULL, -- seconds; 0: the site's default
    speedup TEXT    NOT NULL  -- as declared; '': not
) STRICT;

-- +goose Down
DROP TABLE malleable;
