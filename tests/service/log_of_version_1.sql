CREATE TABLE events (seq INTEGER PRIMARY KEY, id TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX events_by_id ON events (id) WHERE id <> '';
CREATE TABLE waits (id TEXT PRIMARY KEY, due REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX waits_by_due ON waits (due);
CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, digest TEXT NOT NULL, content BLOB NOT NULL);
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO events VALUES
(1, 'a', '{"kind":"decided","time":1000000.0,"id":"a","x":{"age":31.0,"device":"phone"},"eligible":["short","long"],"arm":"long","propensities":[0.5,0.5],"version":0,"z_due":1000100.0,"due":1001000.0}'),
(2, 'b', '{"kind":"decided","time":1000000.0,"id":"b","x":{"age":31.0,"device":"phone"},"eligible":["short","long"],"arm":"short","propensities":[0.5,0.5],"version":0,"z_due":1000100.0,"due":1001000.0}'),
(3, 'c', '{"kind":"decided","time":1000000.0,"id":"c","x":{"age":31.0,"device":"phone"},"eligible":["short","long"],"arm":"short","propensities":[0.5,0.5],"version":1,"z_due":1000100.0,"due":1001000.0}'),
(4, 'a', '{"kind":"followed","time":1000000.0,"id":"a","z":{"minutes":3.0,"finished":"yes"}}'),
(5, 'a', '{"kind":"rewarded","time":1000000.0,"id":"a","reward":1.0}'),
(6, 'b', '{"kind":"followed","time":1000000.0,"id":"b","z":{"minutes":2.0}}'),
(7, 'early', '{"kind":"rewarded","time":1000000.0,"id":"early","reward":1.0}'),
(8, '', '{"kind":"armadded","time":1000000.0,"arm":"middle"}'),
(9, '', '{"kind":"snapshot","time":1000000.0}');
INSERT INTO waits VALUES ('b', 1000100.0), ('c', 1000100.0), ('early', 1001000.0);
INSERT INTO settings VALUES ('began', '{"model":{"name":"lessons","x":{"age":"number","device":["phone","computer"]},"z":{"minutes":"number","finished":["no","yes"]},"policy":{}},"arms":["short","long"]}');
PRAGMA user_version = 1;
