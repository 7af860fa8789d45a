-- +goose Up

-- While a growth on demand is under way: the job's profile before it, and the waiting jobs that start later because of it (JSON).
ALTER TABLE jobs ADD COLUMN growing TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE jobs DROP COLUMN growing;
