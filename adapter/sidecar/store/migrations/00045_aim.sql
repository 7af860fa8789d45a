-- +goose Up

-- What a job wants of its own placement: start, waste, or near; "": nothing. Since when it could have started without that,
-- and the start that it waits for, in Unix seconds; 0: neither yet.
ALTER TABLE jobs ADD COLUMN aim TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN aim_since INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN aim_start INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE jobs DROP COLUMN aim_start;
ALTER TABLE jobs DROP COLUMN aim_since;
ALTER TABLE jobs DROP COLUMN aim;
