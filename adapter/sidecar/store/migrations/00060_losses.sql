-- +goose Up

-- How often Slurm put the job, or a link of its chain, back into the queue, and the nodes that it lost because a node failed, by
-- step: "2:n[3-4] 3:n5".
ALTER TABLE jobs ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN losses TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE jobs DROP COLUMN losses;
ALTER TABLE jobs DROP COLUMN restarts;
