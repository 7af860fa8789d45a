-- +goose Up

-- What operators have set at run time: it counts in place of the configuration's.
CREATE TABLE settings (
    key     TEXT    PRIMARY KEY,
    value   TEXT    NOT NULL, -- JSON
    by      TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    instead TEXT    NOT NULL  -- what the configuration said then
) STRICT, WITHOUT ROWID;
INSERT INTO settings SELECT 'strategy', json_object('strategy', strategy, 'parameters', json(parameters)), by, at, instead FROM choice;
INSERT INTO settings SELECT 'malleability policy', json_object('strategy', strategy, 'parameters', json(parameters)), by, at, instead FROM policy;
DROP TABLE choice;
DROP TABLE policy;
