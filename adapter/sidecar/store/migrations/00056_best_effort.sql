-- +goose Up

-- What becomes of a best-effort job once its last nodes are wanted: 'requeue' or 'cancel'; '': its smallest size is promised.
ALTER TABLE malleable ADD COLUMN best_effort TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE malleable DROP COLUMN best_effort;
