-- +goose Up

-- The history is read in pages, by the end of jobs (jobs_ended), or by user.
CREATE INDEX jobs_uid ON jobs (uid, ended);
CREATE INDEX jobs_user ON jobs (user, ended);

-- +goose Down
DROP INDEX jobs_user;
DROP INDEX jobs_uid;
