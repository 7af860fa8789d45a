-- +goose Up

-- What growths on demand took of waiting jobs' budgets (grow_delay), and of their users' shares: see row/ledger.go.
CREATE TABLE grow_delays (
    user   INTEGER NOT NULL, -- 1: id is a user's, and the amount in node-seconds; 0: a Slurm job's, and in seconds
    id     INTEGER NOT NULL,
    since  INTEGER NOT NULL, -- of a job, when it was submitted; of a user, the last growth; Unix seconds
    amount INTEGER NOT NULL,
    PRIMARY KEY (user, id)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE grow_delays;
