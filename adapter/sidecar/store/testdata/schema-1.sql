INSERT INTO jobs (id, slurm_id, submitted, name, user, uid, gid, account, qos, partition, expand_limit, drive, begin, state, step, started, step_started, ended, end_state)
VALUES (1, 7, 1700000000, 'amr', 'ann', 1001, 1001, 'phys', 'normal', 'main', 1, 'merge', 0, 'running', 1, 1700000010, 1700000010, 0, ''),
       (2, 8, 1700000001, 'it''s', 'bob', 1002, 1002, '', '', 'main', 0, 'chain', 0, 'ended', 1, 1700000010, 1700000010, 1700000100, 'COMPLETED');
INSERT INTO profiles VALUES (1, 1, 600, 2), (1, 2, 300, 4), (2, 1, 90, 1);
INSERT INTO plans VALUES (1, 1, 1700000010, 1700000610, 2, 'n[1-2]'), (1, 2, 1700000610, 1700000910, 4, 'n[1-4]');
INSERT INTO allocations (job, step, starts, ends, nodes, node_list) VALUES (1, 1, 1700000010, 0, 2, 'n[1-2]'), (2, 1, 1700000010, 1700000100, 1, 'n3');
INSERT INTO parts VALUES (1, 9, 2, 'n[3-4]');
INSERT INTO intents (job, action, detail, at, settled) VALUES (1, 'grow', 'x', 1700000020000000, 0), (2, 'grow', 'y', 1700000020000000, 1700000021000000);
INSERT INTO events (at, job, kind, detail) VALUES (1700000010000000, 1, 'started', '{}'), (1700000100000000, 2, 'ended', '{"state":"COMPLETED"}');
