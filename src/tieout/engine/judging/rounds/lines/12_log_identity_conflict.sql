-- LOG_IDENTITY_CONFLICT: a position that two identities, or two accepted attempts that differ, claim. It is a break of
-- the window of the latest send that claims the position, or else of the latest read. A read counts where neither sends
-- nor the log have the name that it shows. Two names of one form may be one name, written in two ways.
-- Needs: doubtful_positions. Source: taxonomy.md 3 and 8, 2.
INSERT INTO non_message_breaks BY NAME
WITH claims AS (
    SELECT c.*, CASE WHEN NOT bool_or(c.is_sent OR c.is_logged) OVER (
        PARTITION BY c.topic, c."partition", c."offset", c.name) THEN coalesce(c.read_at, never()) END AS named_by_read_at
    FROM claims_of_positions AS c
    SEMI JOIN (SELECT * FROM doubtful_positions WHERE has_conflict) AS d
        ON same_position(c.topic, c."partition", c."offset", d.topic, d."partition", d."offset")
),
claimed AS (
    SELECT c.topic, c."partition", c."offset",
        NOT is_by_position() AND min(c.name) <> max(c.name) AS has_two_names,
        min(form_of(c.name)) <> max(form_of(c.name)) AS has_two_forms,
        min(c.payload_hash) <> max(c.payload_hash) AS differs,
        coalesce(min(c.message_key) <> max(c.message_key), false) AS differs_without_reads,
        coalesce(max(c.attempted_at), nullif(max(c.named_by_read_at), never())) AS at_time,
        min(c.attempted_at) AS sent_at, max(c.attempted_at) AS last_sent_at, min(c.answered_at) AS acked_at,
        max(c.named_by_read_at) AS last_read_at
    FROM claims AS c
    GROUP BY c.topic, c."partition", c."offset"
)
SELECT 'LOG_IDENTITY_CONFLICT' AS class, 'position' AS kind, 'broker' AS locus, topic, "partition", "offset",
    subject_of(topic, "partition", json_field('offset', "offset")) AS subject,
    [position_of(topic, "partition", "offset")] AS positions,
    clues(sent_at := sent_at, acked_at := acked_at) AS clues,
    (sent_at IS NULL OR covered_between('produced', sent_at, last_sent_at))
        AND (has_two_forms OR NOT has_two_names OR coalesce(differs, false))
        AND (NOT is_declared('read') OR differs_without_reads OR coalesce(differs, false)
            OR covered_between('read', last_read_at, last_read_at)) AS is_covered
FROM claimed
WHERE (differs_without_reads OR has_two_names OR differs) AND holds(at_time, topic, "partition", "offset");
