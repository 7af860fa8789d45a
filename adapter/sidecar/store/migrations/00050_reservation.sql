-- +goose Up

-- The reservation of the site in which the job runs (--reservation); "": none.
ALTER TABLE jobs ADD COLUMN reservation TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE jobs DROP COLUMN reservation;
