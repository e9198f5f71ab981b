-- The log's data records by id or position: a record belongs to the message that was sent to its position unless their
-- ids differ, else to the message of its own id; where several messages have that id, to the id alone. `named_id` is
-- the record's id, or that of the send to its position; `is_claimed`: a send names its position.
-- Needs: data_records, named_sends, reused_id_*, conflicting_*. Source: taxonomy.md 1 (Messages).
CREATE VIEW claims_on_records AS
SELECT * FROM send_claims('named_sends')
WHERE is_by_id() AND is_declared('log')
    AND (NOT says_failed AND outcome <> 'failed' OR coalesce(log_state = 'aborted', false));
CREATE TABLE record_owners AS FROM owners_among('claims_on_records');
CREATE TABLE ambiguous_records AS FROM ambiguous_among('claims_on_records', 'record_owners');
CREATE VIEW unnamed_records AS SELECT *, NULL::VARCHAR AS producer_session FROM data_records WHERE NOT is_by_content();
CREATE TABLE record_choices AS FROM choices_among('unnamed_records', 'ambiguous_records');

CREATE TABLE named_records AS
SELECT * EXCLUDE (producer_session, by_name, owner, owner_name, is_nameless, held_state, held_until, held_at),
    coalesce(owner, by_name, ambiguous_key(message_id), position_key(topic, "partition", "offset")) AS message_key,
    coalesce(message_id, owner_name) AS named_id,
    is_by_position() OR owner IS NOT NULL AS is_claimed,
    NOT is_ambiguous_key(message_key) AS has_identity
FROM with_names('unnamed_records', 'record_owners', 'record_choices');
