-- Causes of broken messages: what the message, its run or its position proves, else `unknown`.
-- Needs: broken_messages, runs and the tables of the files before. Source: taxonomy.md 4.
CREATE TABLE caused_messages AS
WITH known AS (
    SELECT
        b.number, b.own_cause, i.place, i.incident_kind, i.run, i."offset",
        coalesce(b.class = 'LOST' AND b.locus IN ('consumer', 'broker → consumer') AND r.run_first = 0, false)
            AS begins_partition,
        -- The run ends at the commit that covered it, where readers change, and what precedes it was processed after the
        -- commit. An offset reset leaves the same run, but after a commit that follows what was processed.
        b.class = 'LOST' AND b.locus = 'consumer'
            AND b."commit" > r.run_last AND (r.run_next IS NULL OR b."commit" <= r.run_next)
            AND r.has_reader_before AND r.has_reader_after AND (
                r.consumer_before IS DISTINCT FROM r.consumer_after
                OR r.generation_before IS DISTINCT FROM r.generation_after)
            AND r.before_processed_at > b.committed_at + getvariable('clock_skew') AS is_committed_first,
        -- The run is a whole range that was committed, and began where the one before ended. Not where nothing next to
        -- it had an effect: an emptied output loses whole ranges, too.
        b.class = 'LOST' AND b.locus = 'consumer' AND b.is_next
            AND r.run_first >= b.commit_begins AND r.run_last < b."commit"
            AND (r.run_previous IS NULL OR r.run_previous < b.commit_begins)
            AND (r.run_next IS NULL OR r.run_next >= b."commit")
            AND (r.has_reader_before OR r.has_reader_after) AS is_range_lost,
        -- The run begins where the commits stood, and two readers processed it, the first of them before. Where the
        -- commits had been beyond it, they were reset.
        b.class = 'OUTPUT_DUPLICATE' AND NOT list_contains(b.flags, 'inherited') AND b.reader_count >= 2
            AND NOT (r.has_reader_before AND b.last_consumer IS NOT DISTINCT FROM r.consumer_before
                AND b.last_generation IS NOT DISTINCT FROM r.generation_before)
            AND r.restart_offset <= r.run_first AND (r.run_previous IS NULL OR r.restart_offset > r.run_previous)
            AND r.reached_offset <= r.run_first AS is_processed_first,
        l.is_after_election, l.was_before_topic,
        o.number IS NOT NULL AS is_overrun,
        b.sent_at >= g.group_began_at + getvariable('clock_skew')
            AND b.sent_at + getvariable('clock_skew') < g.given_at AS is_of_added
    FROM broken_messages AS b
    JOIN broken_in_run AS i ON i.number = b.number
    JOIN runs AS r ON r.place = i.place AND r.kind = i.kind AND r.run IS NOT DISTINCT FROM i.run
        AND r."commit" IS NOT DISTINCT FROM i."commit"
    LEFT JOIN proven_by_leaders AS l ON l.number = b.number
    LEFT JOIN overrun AS o ON o.number = b.number
    LEFT JOIN added_partitions AS g ON g.topic IS NOT DISTINCT FROM b.topic
        AND g."partition" IS NOT DISTINCT FROM b."partition"
)
SELECT
    number, place, incident_kind, run, "offset", begins_partition,
    CASE
        WHEN own_cause IS NOT NULL THEN own_cause
        WHEN is_committed_first OR is_range_lost THEN 'commit before process'
        WHEN is_processed_first THEN 'process before commit'
        WHEN is_after_election THEN 'leader failover or unclean election'
        WHEN was_before_topic THEN 'topic recreated'
        WHEN is_overrun THEN 'retention overrun'
        WHEN begins_partition AND is_of_added THEN 'partition count changed'
        ELSE 'unknown'
    END AS cause
FROM known;
