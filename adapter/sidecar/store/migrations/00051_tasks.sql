-- +goose Up

-- Of a job that is a task of an array: the array's job, and the task's number there. array is 0 of other jobs, and of those from before.
ALTER TABLE jobs ADD COLUMN array INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN task INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_array ON jobs (array, task, ended);

-- +goose Down
DROP INDEX jobs_array;
ALTER TABLE jobs DROP COLUMN task;
ALTER TABLE jobs DROP COLUMN array;
