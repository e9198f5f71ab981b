-- Per message, facts of its sends: counts by outcome, the first and the last one, their positions and contents. Most
-- messages are sent once and take their facts from that row; only the others are aggregated.
-- Needs: sends. Source: taxonomy.md 1 (Messages).
CREATE TABLE several_sends AS SELECT message_key FROM sends GROUP BY message_key HAVING count(*) > 1;

CREATE VIEW send_shares AS
SELECT
    message_key,
    1::BIGINT AS attempts,
    (is_inside)::BIGINT AS attempts_in,
    (outcome = 'acked')::BIGINT AS acked,
    (outcome = 'acked' AND is_inside)::BIGINT AS acked_in,
    (outcome = 'failed')::BIGINT AS failed,
    (outcome = 'failed' AND is_inside)::BIGINT AS failed_in,
    (outcome = 'unknown')::BIGINT AS unknown,
    (outcome = 'unknown' AND is_inside)::BIGINT AS unknown_in,
    (is_failed_there)::BIGINT AS failed_there,
    (is_failed_there AND is_inside)::BIGINT AS failed_there_in,
    message_id AS sent_id,
    has_identity,
    CASE WHEN attempted_at IS NOT NULL THEN sent END AS first_attempt,
    CASE WHEN attempted_at IS NOT NULL AND outcome <> 'failed' THEN sent END AS first_sent,
    CASE WHEN getvariable('ordering') = 'key' AND attempted_at IS NULL AND outcome <> 'failed' THEN sent END
        AS first_undated,
    attempted_at IS NULL OR coalesce(is_approximate, false) AS is_roughly_dated,
    coalesce(attempted_at, never()) AS last_attempt_at,
    CASE WHEN outcome = 'acked' THEN answered END AS first_acked,
    CASE WHEN outcome = 'unknown' THEN answered END AS last_unknown,
    CASE WHEN is_failed_there THEN answered END AS last_failed_there,
    is_contradicted,
    CASE WHEN "offset" IS NOT NULL AND outcome = 'acked' THEN placed END AS acked_place,
    CASE WHEN "offset" IS NOT NULL AND outcome = 'unknown' THEN placed END AS unknown_place,
    placed AS attempt_place,
    {'at': coalesce(attempted_at, never()), 'intended_partition': intended_partition} AS first_intended,
    coalesce(outcome <> 'failed' AND "partition" <> intended_partition, false) AS is_misrouted,
    CASE WHEN getvariable('ordering') = 'key' AND outcome = 'acked' THEN completed_at END AS completed_at,
    is_by_content() AND coalesce(may_be_met_early, false) AS may_be_met_early,
    "offset" IS NOT NULL AND log_state IS NULL AND outcome <> 'failed' AS is_elsewhere,
    CASE WHEN is_by_content() THEN payload_hash END AS sent_hash,
    CASE WHEN met_by(topic, message_id, payload_hash) IS NOT NULL
        THEN sent_marks(attempted_at) ELSE 0 END AS marks,
    null_contents AS sent_nulls,
    lacking_contents AS sent_lacking,
    key_hash AS order_key,
    key_hash AS last_key
FROM (
    SELECT
        *,
        in_window(attempted_at) AS is_inside,
        coalesce(outcome = 'failed' AND ("offset" IS NULL OR log_state IN ('none', 'committed')), false)
            AS is_failed_there,
        {'at': attempted_at, 'sequence': sequence, 'producer_id': producer_id,
            'producer_session': producer_session} AS sent,
        {'at': attempted_at, 'done_at': coalesce(completed_at, attempted_at)} AS answered,
        {'at': attempted_at, 'place': {'topic': topic, 'partition': "partition"}} AS placed
    FROM sends
);

CREATE TABLE facts_of_several_sends AS
SELECT
    message_key,
    count(*) AS attempts,
    sum(attempts_in)::BIGINT AS attempts_in,
    sum(acked)::BIGINT AS acked,
    sum(acked_in)::BIGINT AS acked_in,
    sum(failed)::BIGINT AS failed,
    sum(failed_in)::BIGINT AS failed_in,
    sum(unknown)::BIGINT AS unknown,
    sum(unknown_in)::BIGINT AS unknown_in,
    sum(failed_there)::BIGINT AS failed_there,
    sum(failed_there_in)::BIGINT AS failed_there_in,
    min(sent_id) AS sent_id,
    bool_and(has_identity) AS has_identity,
    least_send(first_attempt) AS first_attempt,
    least_send(first_sent) AS first_sent,
    least_send(first_undated) AS first_undated,
    bool_or(is_roughly_dated) AS is_roughly_dated,
    max(last_attempt_at) AS last_attempt_at,
    least_answer(first_acked) AS first_acked,
    greatest_answer(last_unknown) AS last_unknown,
    greatest_answer(last_failed_there) AS last_failed_there,
    bool_or(is_contradicted) AS is_contradicted,
    least_place(acked_place) AS acked_place,
    least_place(unknown_place) AS unknown_place,
    least_place(attempt_place) AS attempt_place,
    arg_min(first_intended, create_sort_key(first_intended."at", 'ASC NULLS FIRST',
        first_intended.intended_partition, 'ASC NULLS FIRST')) AS first_intended,
    bool_or(is_misrouted) AS is_misrouted,
    min(completed_at) AS completed_at,
    bool_or(may_be_met_early) AS may_be_met_early,
    bool_or(is_elsewhere) AS is_elsewhere,
    min(sent_hash) AS sent_hash,
    bit_or(marks) AS marks,
    bit_or(sent_nulls) AS sent_nulls,
    bit_or(sent_lacking) AS sent_lacking,
    min(order_key) AS order_key,
    max(last_key) AS last_key
FROM send_shares SEMI JOIN several_sends USING (message_key)
GROUP BY message_key;

CREATE VIEW send_facts AS
SELECT * FROM send_shares ANTI JOIN several_sends USING (message_key)
UNION ALL BY NAME
SELECT * FROM facts_of_several_sends;
