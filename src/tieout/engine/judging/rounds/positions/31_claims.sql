-- The claims on a position, for rows that show nothing more: its record first, then the sends that did not fail, the
-- latest acknowledged one first.
-- Needs: keyed_sends, keyed_records. Source: interpretations.md 17, 38 and 83.
CREATE VIEW position_claims AS
SELECT * EXCLUDE (says_failed, outcome, log_state) FROM send_claims('keyed_sends') WHERE outcome <> 'failed'
UNION ALL BY NAME
SELECT topic, "partition", "offset", message_key, payload_hash,
    CASE WHEN is_claimed OR named_id IS NOT NULL THEN 0 ELSE 3 END AS rank, false AS is_doubtful, 0 AS ago,
    named_id AS name, NULL::VARCHAR AS session, transaction_state AS state, open_until,
    record_timestamp AS recorded_at
FROM keyed_records;
CREATE TABLE owners AS FROM owners_among('position_claims');
CREATE TABLE ambiguous_claims AS FROM ambiguous_among('position_claims', 'owners');
