-- Sends by id or position, with the state of their own record in the log, their outcome and their message's key. A send
-- without identity is a message of its own (own_sends), named by its digest and its number among equal rows.
-- Needs: evidence_produced, log_rows, conflicting_*, states_by_id, transaction_states, contents_of_reused_ids. Source:
-- taxonomy.md 1 (Messages, Outcomes).
CREATE TABLE named_sends AS
WITH held AS (
    SELECT log.topic, log."partition", log."offset", transaction_state, message_id,
        CASE WHEN is_by_position() AND p."offset" IS NOT NULL THEN coalesce(c.payload_hash, p.held) END AS content
    FROM log_rows AS log
    LEFT JOIN conflicting_positions AS p
        ON same_partition(log.topic, log."partition", p.topic, p."partition") AND log."offset" = p."offset"
    LEFT JOIN conflicting_payloads AS c
        ON same_partition(log.topic, log."partition", c.topic, c."partition") AND log."offset" = c."offset"
        AND log.payload_hash = c.payload_hash
    WHERE NOT log.is_control),
sends AS (
    SELECT * EXCLUDE ("offset", outcome),
        null_contents('produced', payload_hash, key_hash, header_hash, record_timestamp, content, outcome)
            AS null_contents,
        lacking_contents('produced', payload_hash, key_hash, header_hash, record_timestamp, content)
            AS lacking_contents,
        placed_offset("offset") AS "offset", claimed_outcome(outcome) AS claimed,
        is_by_position() OR message_id IS NULL AS is_by_place
    FROM evidence_produced WHERE NOT is_by_content()),
placed AS (
    SELECT s.*, h.transaction_state AS held_state, h.message_id AS held_id, h.content AS held_content,
        CASE WHEN p."offset" IS NOT NULL THEN coalesce(c.payload_hash, p.earliest) END AS place_content
    FROM sends AS s
    LEFT JOIN held AS h
        ON same_partition(s.topic, s."partition", h.topic, h."partition") AND s."offset" = h."offset"
    LEFT JOIN conflicting_positions AS p
        ON same_partition(s.topic, s."partition", p.topic, p."partition")
        AND CASE WHEN is_by_place THEN s."offset" END = p."offset"
    LEFT JOIN conflicting_payloads AS c
        ON same_partition(s.topic, s."partition", c.topic, c."partition")
        AND CASE WHEN is_by_place THEN s."offset" END = c."offset" AND s.payload_hash = c.payload_hash),
resolved AS (
    SELECT s.* EXCLUDE (held_state, held_id, held_content),
        coalesce(
            CASE
                WHEN is_by_position() AND held_content IS DISTINCT FROM place_content THEN NULL
                -- A failed send asserts no position: what lies there is its own only where it shows the send's id.
                WHEN NOT is_by_position() AND NOT coalesce(held_id = s.message_id, claimed <> 'failed') THEN NULL
                ELSE held_state END,
            i.state) AS log_state,
        state_of_send(s.transaction_id, log_state, t.state, s.transaction_state) AS own_state,
        resolved_outcome(claimed, own_state) AS outcome,
        claimed = 'failed' AS says_failed,
        coalesce(says_failed AND own_state = 'committed', false) AS is_contradicted,
        CASE
            WHEN is_by_place THEN position_content_key(s.topic, s."partition", s."offset", place_content)
            WHEN is_session_scoped() THEN session_key(s.producer_id, s.producer_session, s.message_id)
            WHEN r.content IS NOT NULL THEN content_key(s.message_id, r.content)
            ELSE id_key(s.message_id) END AS known_key,
        NOT is_by_place OR "offset" IS NOT NULL AS has_identity
    FROM placed AS s
    LEFT JOIN states_by_id AS i ON CASE WHEN s."offset" IS NULL THEN s.message_id END = i.message_id
    LEFT JOIN transaction_states AS t
        ON s.transaction_id = t.transaction_id AND s.producer_id IS NOT DISTINCT FROM t.producer_id
        AND s.producer_session IS NOT DISTINCT FROM t.producer_session
    LEFT JOIN contents_of_reused_ids AS r
        ON s.message_id = r.message_id AND s.producer_id IS NOT DISTINCT FROM r.producer_id
        AND s.producer_session IS NOT DISTINCT FROM r.producer_session)
SELECT * EXCLUDE (claimed, own_state, place_content, is_by_place, known_key),
    CASE WHEN has_identity THEN known_key ELSE 'r:' || fields_digest(concat_ws(',',
        json_micros('attempted_at', attempted_at), json_micros('completed_at', completed_at),
        json_field('content', content), json_field('effect_key', effect_key),
        json_field('header_hash', header_hash), json_field('intended_partition', intended_partition),
        json_field('is_approximate', is_approximate), json_field('key_hash', key_hash),
        json_field('leader_epoch', leader_epoch), json_field('log_state', log_state),
        json_field('message_id', message_id), json_field('offset', "offset"), json_field('outcome', outcome),
        json_field('partition', "partition"), json_field('payload_hash', payload_hash),
        json_field('producer_id', producer_id), json_field('producer_session', producer_session),
        json_micros('record_timestamp', record_timestamp), json_field('sequence', sequence),
        json_field('topic', topic), json_field('topic_id', topic_id),
        json_field('transaction_id', transaction_id), json_field('transaction_state', transaction_state))) END AS message_key
FROM resolved;

CREATE TABLE own_sends AS
SELECT * REPLACE (message_key || '#' || row_number() OVER (
    PARTITION BY message_key ORDER BY says_failed, is_contradicted) AS message_key)
FROM named_sends WHERE NOT has_identity;
