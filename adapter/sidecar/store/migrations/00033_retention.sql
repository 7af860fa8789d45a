-- +goose Up

-- Events before this time, in microseconds, may be deleted; no other ones ever.
CREATE TABLE retention (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    before INTEGER NOT NULL
) STRICT;
DROP TRIGGER events_stay;
-- +goose StatementBegin
CREATE TRIGGER events_stay BEFORE DELETE ON events WHEN OLD.at >= coalesce((SELECT before FROM retention), 0)
BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;
-- +goose StatementEnd

-- A job is deleted with what refers to it.
CREATE INDEX intents_job ON intents (job);
CREATE INDEX hold_hours_job ON hold_hours (job);

-- +goose Down
DROP INDEX hold_hours_job;
DROP INDEX intents_job;
DROP TRIGGER events_stay;
-- +goose StatementBegin
CREATE TRIGGER events_stay BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;
-- +goose StatementEnd
DROP TABLE retention;
