-- One row per message: its disposition, class, flags, locus, and whether this window judges it. The class is the first
-- that holds, in the order of taxonomy.md 3; null for a record that nobody attempted and nobody received.
-- Needs: all tables above.
CREATE TABLE fates AS
WITH classed AS (
    SELECT *,
        CASE
            WHEN is_phantom_unknown THEN 'PHANTOM_UNKNOWN'
            WHEN is_aborted_effect THEN 'PHANTOM_ABORTED'
            WHEN is_phantom_uncommitted THEN 'PHANTOM_UNCOMMITTED'
            WHEN is_lost THEN 'LOST'
            WHEN value_locus IS NOT NULL THEN 'CORRUPTED_VALUE'
            WHEN key_locus IS NOT NULL THEN 'CORRUPTED_KEY'
            WHEN header_locus IS NOT NULL THEN 'CORRUPTED_HEADER'
            WHEN timestamp_locus IS NOT NULL THEN 'CORRUPTED_TIMESTAMP'
            WHEN is_output_duplicate THEN 'OUTPUT_DUPLICATE'
            WHEN is_log_duplicate THEN 'LOG_DUPLICATE'
            WHEN is_redelivery THEN 'REDELIVERY'
            WHEN is_elsewhere THEN 'MISROUTED'
            WHEN is_late THEN 'LATE'
            WHEN is_in_flight THEN 'IN_FLIGHT'
            WHEN is_of_dead_letter THEN 'DEAD_LETTERED'
            WHEN is_of_filter THEN 'FILTERED'
            WHEN is_taken_by_compaction THEN 'COMPACTED'
            WHEN is_unverifiable THEN 'UNVERIFIABLE'
            WHEN disposition = 'delivered' AND acked = 0 THEN 'RECOVERED'
            WHEN disposition = 'delivered' THEN 'DELIVERED'
            WHEN is_not_sent THEN 'NOT_SENT'
        END AS class
    FROM with_flags
)
SELECT message_key, disposition, class,
    -- Every other class that holds and says that something went wrong, and the flags proper.
    list_sort(list_distinct([
        CASE WHEN is_phantom_uncommitted AND class <> 'PHANTOM_UNCOMMITTED' THEN 'PHANTOM_UNCOMMITTED' END,
        CASE WHEN (is_aborted_effect AND class <> 'PHANTOM_ABORTED')
            OR (acceptance = 'accepted' AND is_from_aborted) THEN 'PHANTOM_ABORTED' END,
        CASE WHEN is_lost AND class <> 'LOST' THEN 'LOST' END,
        CASE WHEN value_locus IS NOT NULL AND class <> 'CORRUPTED_VALUE' THEN 'CORRUPTED_VALUE' END,
        CASE WHEN key_locus IS NOT NULL AND class <> 'CORRUPTED_KEY' THEN 'CORRUPTED_KEY' END,
        CASE WHEN header_locus IS NOT NULL AND class <> 'CORRUPTED_HEADER' THEN 'CORRUPTED_HEADER' END,
        CASE WHEN timestamp_locus IS NOT NULL AND class <> 'CORRUPTED_TIMESTAMP' THEN 'CORRUPTED_TIMESTAMP' END,
        CASE WHEN is_output_duplicate AND class <> 'OUTPUT_DUPLICATE' THEN 'OUTPUT_DUPLICATE' END,
        CASE WHEN is_log_duplicate AND class <> 'LOG_DUPLICATE' THEN 'LOG_DUPLICATE' END,
        CASE WHEN is_redelivery AND class <> 'REDELIVERY' THEN 'REDELIVERY' END,
        CASE WHEN is_elsewhere AND class <> 'MISROUTED' THEN 'MISROUTED' END,
        CASE WHEN is_late AND class <> 'LATE' THEN 'LATE' END,
        CASE WHEN is_in_flight AND class <> 'IN_FLIGHT' THEN 'IN_FLIGHT' END,
        CASE WHEN is_of_dead_letter AND class <> 'DEAD_LETTERED' THEN 'DEAD_LETTERED' END,
        CASE WHEN is_of_filter AND class <> 'FILTERED' THEN 'FILTERED' END,
        CASE WHEN is_taken_by_compaction AND class <> 'COMPACTED' THEN 'COMPACTED' END,
        CASE WHEN is_unverifiable AND class <> 'UNVERIFIABLE' THEN 'UNVERIFIABLE' END,
        CASE WHEN is_overdue THEN 'OVERDUE' END,
        CASE WHEN is_possible_duplicate THEN 'POSSIBLE_DUPLICATE' END,
        CASE WHEN is_failed_but_written THEN 'FAILED_BUT_WRITTEN' END,
        CASE WHEN is_lost AND is_expired THEN 'EXPIRED' END,
        CASE WHEN is_inherited THEN 'inherited' END,
        CASE WHEN is_lost AND effect_rows > 0 THEN 'partial' END,
        CASE WHEN is_accounted_twice THEN 'set_aside_and_delivered' END,
        CASE WHEN is_lost AND is_committed_ahead THEN 'COMMIT_AHEAD' END
    ])) AS flags,
    CASE class
        WHEN 'PHANTOM_UNKNOWN' THEN phantom_unknown_locus
        WHEN 'PHANTOM_ABORTED' THEN 'consumer isolation'
        WHEN 'PHANTOM_UNCOMMITTED' THEN 'consumer isolation'
        WHEN 'LOST' THEN lost_locus
        WHEN 'CORRUPTED_VALUE' THEN value_locus
        WHEN 'CORRUPTED_KEY' THEN key_locus
        WHEN 'CORRUPTED_HEADER' THEN header_locus
        WHEN 'CORRUPTED_TIMESTAMP' THEN timestamp_locus
        WHEN 'OUTPUT_DUPLICATE' THEN CASE WHEN is_inherited THEN 'producer → broker' ELSE 'consumer or sink' END
        WHEN 'LOG_DUPLICATE' THEN 'producer → broker'
        WHEN 'REDELIVERY' THEN 'broker → consumer'
        WHEN 'MISROUTED' THEN 'producer'
        WHEN 'LATE' THEN 'after the acknowledgement'
        WHEN 'IN_FLIGHT' THEN 'unknown'
        WHEN 'UNVERIFIABLE' THEN 'unknown'
    END AS locus,
    -- By its earliest attempt, a phantom by its first effect.
    class IS NOT NULL AND CASE
        WHEN is_orphan THEN holds_message(is_in_ranges, first_seen_at)
        WHEN is_aborted_effect THEN holds_message(is_in_ranges, effect_seen_at)
        WHEN class = 'PHANTOM_UNCOMMITTED' THEN holds_message(is_in_ranges, open_seen_at)
        ELSE is_owned END AS is_judged_here,
    is_due, is_old_enough, is_missing_in_log, is_committed_ahead, has_first_record, shares_ambiguous_id, may_be_copy,
    is_record_origin_covered, may_be_elsewhere
FROM classed;
