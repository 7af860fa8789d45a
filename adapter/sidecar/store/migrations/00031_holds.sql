-- +goose Up

-- What promises cost: see row/ledger.go. Times are Unix seconds, sums are node-milliseconds.
CREATE TABLE holds (
    id        INTEGER PRIMARY KEY,
    job       INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    step      INTEGER NOT NULL,
    name      TEXT    NOT NULL, -- of the reservation; '': further holds of the job, added up
    nodes     INTEGER NOT NULL,
    node_list TEXT    NOT NULL,
    planned   INTEGER NOT NULL,
    made      INTEGER NOT NULL,
    changes   INTEGER NOT NULL,
    changed   INTEGER NOT NULL,
    begun     INTEGER NOT NULL,
    ended     INTEGER NOT NULL, -- 0: it is there
    cause     TEXT    NOT NULL,
    by        TEXT    NOT NULL,
    held      INTEGER NOT NULL,
    idle      INTEGER NOT NULL,
    counted   INTEGER NOT NULL
) STRICT;
CREATE INDEX holds_job ON holds (job);
CREATE INDEX holds_open ON holds (id) WHERE ended = 0;

-- The same by hours of the site's clock, so that days add up. They outlive the rows of holds.
CREATE TABLE hold_hours (
    hour INTEGER NOT NULL, -- its first second
    job  INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    held INTEGER NOT NULL,
    idle INTEGER NOT NULL,
    PRIMARY KEY (hour, job)
) STRICT, WITHOUT ROWID;

-- Growths that were planned for running jobs; outcome '' while they are open.
CREATE TABLE promises (
    job        INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    step       INTEGER NOT NULL,
    from_nodes INTEGER NOT NULL,
    to_nodes   INTEGER NOT NULL,
    got        INTEGER NOT NULL,
    at         INTEGER NOT NULL, -- when the nodes were promised; milliseconds, as the next two
    asked      INTEGER NOT NULL,
    decided    INTEGER NOT NULL,
    lapsed     INTEGER NOT NULL,
    outcome    TEXT    NOT NULL,
    cause      TEXT    NOT NULL,
    by         TEXT    NOT NULL,
    PRIMARY KEY (job, step)
) STRICT, WITHOUT ROWID;
CREATE INDEX promises_decided ON promises (decided);

-- Stock jobs that start later because of holds.
CREATE TABLE delays (
    slurm_id  INTEGER NOT NULL,
    submitted INTEGER NOT NULL,
    user      TEXT    NOT NULL,
    uid       INTEGER NOT NULL,
    account   TEXT    NOT NULL,
    qos       TEXT    NOT NULL,
    partition TEXT    NOT NULL,
    since     INTEGER NOT NULL,
    could     INTEGER NOT NULL, -- when it would start without holds
    seconds   INTEGER NOT NULL, -- by which it starts later
    hold      TEXT    NOT NULL,
    job       INTEGER NOT NULL, -- of that hold; 0: not known
    settled   INTEGER NOT NULL, -- when it started or left; 0: it waits
    PRIMARY KEY (slurm_id, submitted)
) STRICT, WITHOUT ROWID;
CREATE INDEX delays_since ON delays (since);

CREATE INDEX jobs_ended ON jobs (ended);

-- +goose Down
DROP INDEX jobs_ended;
DROP TABLE delays;
DROP TABLE promises;
DROP TABLE hold_hours;
DROP TABLE holds;
