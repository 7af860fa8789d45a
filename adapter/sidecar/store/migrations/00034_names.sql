-- +goose Up

-- The history is also read by the names of jobs, and by the accounts that a user coordinates.
CREATE INDEX jobs_name ON jobs (name, ended);
CREATE INDEX jobs_account ON jobs (account, ended);

-- +goose Down
DROP INDEX jobs_account;
DROP INDEX jobs_name;
