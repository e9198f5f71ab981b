-- The table of breaks that are not of one message, but of a commit, a position, a transaction or an order. The files
-- from 11 to 59 fill it.
-- Needs: messages, sends, records, reads_at_positions and what was set aside. Source: taxonomy.md 3.
CREATE TABLE non_message_breaks (
    class VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    message_id VARCHAR,
    locus VARCHAR NOT NULL,
    topic VARCHAR,
    "partition" INTEGER,
    "offset" BIGINT,
    positions STRUCT(topic VARCHAR, "partition" INTEGER, "offset" BIGINT)[] NOT NULL,
    flags VARCHAR[] DEFAULT [],
    commit_rows STRUCT(topic VARCHAR, "partition" INTEGER, first_offset BIGINT, committed_offset BIGINT,
        committed_at TIMESTAMP, metadata VARCHAR)[],
    mirrored_rows STRUCT(topic VARCHAR, "partition" INTEGER, first_offset BIGINT, committed_offset BIGINT,
        committed_at TIMESTAMP, metadata VARCHAR)[],
    clues STRUCT(sent_at TIMESTAMP, acked_at TIMESTAMP, is_plain_overlap BOOLEAN, leader_epoch INTEGER,
        generation_before BIGINT, generation BIGINT, before_at TIMESTAMP, committed_at TIMESTAMP,
        is_beyond_end BOOLEAN) DEFAULT clues(),
    is_covered BOOLEAN DEFAULT true
);

-- Attempts with a position that were accepted: acknowledged ones, and unknown ones of a message that is proven.
CREATE VIEW accepted_sends AS
SELECT message_key, message_id, payload_hash, topic, "partition", "offset", outcome, attempted_at, completed_at
FROM sends
WHERE outcome = 'acked' AND "offset" IS NOT NULL
UNION ALL
SELECT s.message_key, s.message_id, s.payload_hash, s.topic, s."partition", s."offset", s.outcome, s.attempted_at,
    s.completed_at
FROM sends AS s
SEMI JOIN (SELECT message_key FROM messages WHERE acceptance = 'accepted' AND unknown > 0) AS m USING (message_key)
WHERE s.outcome = 'unknown' AND s."offset" IS NOT NULL;

-- Reads that show what the log holds at a position, whatever came of their poll.
CREATE VIEW placed_reads AS
SELECT message_key, message_id, payload_hash, topic, "partition", "offset", processed_at, is_ambiguous
FROM reads_at_positions
WHERE "offset" IS NOT NULL AND NOT coalesce(is_of_aborted, false);

-- Positions of what was set aside: those of its messages, and those that its own rows name.
CREATE VIEW set_aside_positions AS
SELECT p.topic, p."partition", p."offset"
FROM message_positions AS p
SEMI JOIN (SELECT message_key FROM messages WHERE set_aside_rows > 0) AS m USING (message_key)
WHERE p.is_asserted OR p.is_visible
UNION
SELECT topic, "partition", "offset" FROM filtered WHERE effect_state = 'ok' AND "offset" IS NOT NULL
UNION
SELECT topic, "partition", "offset" FROM dead_letters WHERE effect_state = 'ok' AND "offset" IS NOT NULL;
