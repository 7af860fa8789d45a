-- +goose Up
-- Times are Unix seconds (events and intents: microseconds); 0 is "not yet".

CREATE TABLE jobs (
    id           INTEGER PRIMARY KEY,
    slurm_id     INTEGER NOT NULL,           -- the base job; the first job of a chain
    submitted    INTEGER NOT NULL,           -- tells Slurm ids apart that were used twice
    name         TEXT    NOT NULL,
    user         TEXT    NOT NULL,
    uid          INTEGER NOT NULL,
    gid          INTEGER NOT NULL,
    account      TEXT    NOT NULL,
    qos          TEXT    NOT NULL,
    partition    TEXT    NOT NULL,
    expand_limit REAL    NOT NULL,           -- 0: the site's default; 1e999: no bound
    drive        TEXT    NOT NULL,           -- merge, companion or chain
    begin        INTEGER NOT NULL,           -- the user's own earliest start
    state        TEXT    NOT NULL CHECK (state IN ('queued', 'starting', 'running', 'waiting', 'ended')),
    step         INTEGER NOT NULL DEFAULT 0, -- 1-based; 0 before the start
    started      INTEGER NOT NULL DEFAULT 0,
    step_started INTEGER NOT NULL DEFAULT 0,
    step_ended   INTEGER NOT NULL DEFAULT 0, -- when the application ended the present step
    ended        INTEGER NOT NULL DEFAULT 0,
    end_state    TEXT    NOT NULL DEFAULT '',
    batch_host   TEXT    NOT NULL DEFAULT '',
    UNIQUE (slurm_id, submitted)
) STRICT;
CREATE INDEX jobs_active ON jobs (state) WHERE state <> 'ended';

-- What was asked for.
CREATE TABLE profiles (
    job      INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    step     INTEGER NOT NULL CHECK (step >= 1),
    duration INTEGER NOT NULL CHECK (duration >= 1),
    nodes    INTEGER NOT NULL CHECK (nodes >= 1),
    PRIMARY KEY (job, step)
) STRICT, WITHOUT ROWID;

-- What is planned now.
CREATE TABLE plans (
    job       INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    step      INTEGER NOT NULL CHECK (step >= 1),
    starts    INTEGER NOT NULL,
    ends      INTEGER NOT NULL CHECK (ends >= starts),
    nodes     INTEGER NOT NULL,
    node_list TEXT    NOT NULL,
    PRIMARY KEY (job, step)
) STRICT, WITHOUT ROWID;

-- What was really held, in order.
CREATE TABLE allocations (
    id        INTEGER PRIMARY KEY,
    job       INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    step      INTEGER NOT NULL,
    starts    INTEGER NOT NULL,
    ends      INTEGER NOT NULL DEFAULT 0,
    nodes     INTEGER NOT NULL,
    node_list TEXT    NOT NULL
) STRICT;
CREATE INDEX allocations_job ON allocations (job);

-- The Slurm jobs that make up an evolving job beside its base job: companions
-- (and expanders until they are merged), or the jobs of a chain.
CREATE TABLE parts (
    job       INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    slurm_id  INTEGER NOT NULL,
    step      INTEGER NOT NULL,
    node_list TEXT    NOT NULL,
    PRIMARY KEY (job, slurm_id)
) STRICT, WITHOUT ROWID;

-- Every change asked of Slurm, written before and settled after.
CREATE TABLE intents (
    id      INTEGER PRIMARY KEY,
    job     INTEGER REFERENCES jobs (id) ON DELETE CASCADE,
    action  TEXT    NOT NULL,
    detail  TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    settled INTEGER NOT NULL DEFAULT 0,
    error   TEXT    NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX intents_open ON intents (settled) WHERE settled = 0;

-- What happened; rows are only ever added.
CREATE TABLE events (
    id     INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    job    INTEGER REFERENCES jobs (id),
    kind   TEXT    NOT NULL,
    detail TEXT    NOT NULL
) STRICT;
CREATE INDEX events_job ON events (job);

-- +goose StatementBegin
CREATE TRIGGER events_keep BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER events_stay BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;
-- +goose StatementEnd

-- +goose Down
DROP TABLE events;
DROP TABLE intents;
DROP TABLE parts;
DROP TABLE allocations;
DROP TABLE plans;
DROP TABLE profiles;
DROP TABLE jobs;
