-- By content every attempt is a message of its own: its key is the digest of its row, numbered among equal rows. A
-- record belongs to the attempt that names its position, unless both show payloads that differ; the others, in the
-- order of the log, to the attempts of their payload without position. A further record is a copy of the payload's
-- latest attempt where nobody else can have sent it.
-- Needs: data_records. Source: taxonomy.md 1 (Messages), interpretations.md 65 to 69.
CREATE TABLE content_attempts AS
WITH digested AS (
    SELECT rowid AS line, payload_hash, topic, "partition", placed_offset("offset") AS "offset", sequence,
        claimed_outcome(outcome) AS claimed, attempted_at, completed_at, send_digest(p) AS digest
    FROM evidence_produced AS p
    WHERE is_by_content())
SELECT * EXCLUDE (digest), 'r:' || digest || '#' || row_number() OVER (PARTITION BY digest) AS message_key
FROM digested;

-- The attempt that names the position of a record: the one of its payload, else the one acknowledged latest.
CREATE TABLE content_claims AS
WITH claims AS (
    SELECT r.topic, r."partition", r."offset", a.message_key, a.payload_hash AS sent_hash,
        coalesce(a.payload_hash = r.payload_hash, false) AS is_equal, a.claimed = 'acked' AS is_acked,
        coalesce(a.completed_at, a.attempted_at, never()) AS done_at
    FROM data_records AS r
    JOIN content_attempts AS a
        ON r.topic IS NOT DISTINCT FROM a.topic AND r."partition" IS NOT DISTINCT FROM a."partition"
        AND r."offset" = a."offset"
    WHERE is_by_content() AND a.claimed <> 'failed' AND coalesce(a.payload_hash = r.payload_hash, true))
SELECT topic, "partition", "offset", message_key, sent_hash
FROM claims
QUALIFY row_number() OVER (
    PARTITION BY topic, "partition", "offset"
    ORDER BY is_equal DESC, is_acked DESC, done_at DESC, message_key DESC) = 1;

CREATE TABLE content_free_records AS
SELECT r.topic, r."partition", r."offset", r.payload_hash, r.record_timestamp,
    row_number() OVER (
        PARTITION BY r.payload_hash
        ORDER BY r.topic NULLS FIRST, r."partition" NULLS FIRST, r."offset" NULLS FIRST) AS number
FROM data_records AS r
ANTI JOIN content_claims AS c
    ON r.topic IS NOT DISTINCT FROM c.topic AND r."partition" IS NOT DISTINCT FROM c."partition"
    AND r."offset" = c."offset"
WHERE is_by_content();

CREATE TABLE content_record_keys AS
WITH known AS (
    SELECT a.*, coalesce(a.attempted_at, never()) AS began_at
    FROM content_attempts AS a
    SEMI JOIN content_free_records AS r USING (payload_hash)),
unplaced AS (
    SELECT payload_hash, message_key,
        row_number() OVER (
            PARTITION BY payload_hash
            ORDER BY outcome_rank(claimed), began_at, topic NULLS LAST, "partition" NULLS LAST, sequence NULLS LAST,
                message_key) AS number
    FROM known
    WHERE "offset" IS NULL),
latest AS (
    SELECT payload_hash, message_key
    FROM known
    QUALIFY row_number() OVER (
        PARTITION BY payload_hash
        ORDER BY began_at DESC, topic DESC NULLS FIRST, "partition" DESC NULLS FIRST, "offset" DESC NULLS FIRST,
            sequence DESC NULLS FIRST, message_key DESC) = 1),
nameless AS (SELECT DISTINCT topic FROM content_attempts WHERE payload_hash IS NULL AND claimed <> 'failed')
SELECT r.topic, r."partition", r."offset",
    coalesce(
        u.message_key,
        CASE WHEN shows_all_sends(
                record_timestamp - getvariable('clock_skew'), record_timestamp + getvariable('clock_skew'))
            AND NOT EXISTS (FROM nameless WHERE topic IS NULL)
            AND NOT coalesce(r.topic IN (SELECT topic FROM nameless), EXISTS (FROM nameless))
            THEN l.message_key END,
        payload_key(r.payload_hash),
        position_key(r.topic, r."partition", r."offset")) AS message_key
FROM content_free_records AS r
LEFT JOIN unplaced AS u ON r.payload_hash = u.payload_hash AND r.number = u.number
LEFT JOIN latest AS l ON r.payload_hash = l.payload_hash;

CREATE TABLE content_records AS
SELECT r.*,
    coalesce(c.message_key, k.message_key) AS message_key,
    c.message_key IS NOT NULL AS is_claimed,
    coalesce(r.payload_hash, c.sent_hash) AS named_id,
    c.message_key IS NOT NULL OR r.payload_hash IS NOT NULL AS has_identity
FROM data_records AS r
LEFT JOIN content_claims AS c
    ON r.topic IS NOT DISTINCT FROM c.topic AND r."partition" IS NOT DISTINCT FROM c."partition"
    AND r."offset" = c."offset"
LEFT JOIN content_record_keys AS k
    ON r.topic IS NOT DISTINCT FROM k.topic AND r."partition" IS NOT DISTINCT FROM k."partition"
    AND r."offset" = k."offset"
WHERE is_by_content();

-- The sends with the state of the record at their position, else of their own. Effects are paired by `best_outcome`:
-- a failed send whose record is written may have one.
CREATE TABLE content_sends AS
WITH states AS (
    SELECT r.message_key, min(state_rank(r.transaction_state)) AS best_rank,
        min(state_rank(r.transaction_state)) FILTER (
            same_position(r.topic, r."partition", r."offset", a.topic, a."partition", a."offset")) AS rank_there
    FROM content_records AS r
    JOIN content_attempts AS a ON r.message_key = a.message_key
    GROUP BY r.message_key),
resolved AS (
    SELECT a.line, a.message_key, a.claimed, a."offset", coalesce(s.best_rank <= state_rank('none'), false) AS is_written,
        ranked_state(CASE WHEN a."offset" IS NOT NULL THEN s.rank_there ELSE s.best_rank END) AS log_state
    FROM content_attempts AS a
    LEFT JOIN states AS s USING (message_key)),
stated AS (
    SELECT p.* EXCLUDE ("offset", outcome), r."offset", r.claimed, r.message_key,
        p.payload_hash IS NOT NULL AS has_identity, r.log_state, r.is_written,
        state_of_send(p.transaction_id, r.log_state, t.state, p.transaction_state) AS state,
        null_contents('produced', payload_hash, key_hash, header_hash, record_timestamp, content, outcome)
            AS null_contents,
        lacking_contents('produced', payload_hash, key_hash, header_hash, record_timestamp, content)
            AS lacking_contents
    FROM resolved AS r
    JOIN evidence_produced AS p ON p.rowid = r.line
    LEFT JOIN transaction_states AS t
        ON p.producer_id IS NOT DISTINCT FROM t.producer_id
        AND p.producer_session IS NOT DISTINCT FROM t.producer_session AND p.transaction_id = t.transaction_id)
SELECT * EXCLUDE (claimed, state, is_written),
    resolved_outcome(claimed, state) AS outcome,
    claimed = 'failed' AS says_failed,
    coalesce(claimed = 'failed' AND state = 'committed', false) AS is_contradicted,
    CASE WHEN is_written AND resolved_outcome(claimed, state) = 'failed' THEN 'unknown'
        ELSE resolved_outcome(claimed, state) END AS best_outcome
FROM stated;
