-- Which messages an incident lost, so that a loss is told at the hop of a chain where it happened.

ALTER TABLE tieout.incident ADD COLUMN message_ids uuid[];
ALTER TABLE tieout.incident ADD COLUMN earlier_ids uuid[];
COMMENT ON COLUMN tieout.incident.message_ids IS
    'MD5 digests of the ids of its lost messages; null where it is of another class, or not each id is known to be one message''s.';
COMMENT ON COLUMN tieout.incident.earlier_ids IS
    'The same as the hop before calls them, where the contract says how; empty where that does not fit each of them.';
