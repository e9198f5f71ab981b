-- Every send and every data record with its message's key, whatever the identity.
-- Needs: named_sends, own_sends, named_records; content_sends and content_records of identity content.
CREATE VIEW keyed_sends AS
SELECT * FROM named_sends WHERE has_identity
UNION ALL BY NAME SELECT * FROM own_sends
UNION ALL BY NAME SELECT * FROM content_sends;

CREATE VIEW keyed_records AS
SELECT * FROM named_records
UNION ALL BY NAME SELECT * FROM content_records;
