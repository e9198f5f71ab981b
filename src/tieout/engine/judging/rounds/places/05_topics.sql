-- One row per topic: the sum of the parts of all buckets.
-- Needs: topic_parts. Source: the rules that use the facts.
CREATE TABLE topics AS
SELECT topic,
    coalesce(bit_or(bits), 0) AS bits,
    max(log_start) AS log_start,
    sum(used_partitions)::BIGINT AS used_partitions,
    min(first_at) AS first_at,
    sum(undated)::BIGINT AS undated,
    sum(begun_partitions)::BIGINT AS begun_partitions,
    coalesce(bool_or(has_nameless_records), false) AS has_nameless_records,
    coalesce(bool_or(has_states), false) AS has_states,
    coalesce(bool_or(has_markers), false) AS has_markers,
    coalesce(bool_or(has_legal_holes), false) OR coalesce(bool_or(has_transactions), false)
        OR bool_or(coalesce(has_states, false) OR coalesce(has_markers, false)) AS has_legal_holes,
    coalesce(bool_or(has_accepted_transactions), false) AS has_accepted_transactions,
    coalesce(bool_or(has_payloads), false) AS has_payloads,
    coalesce(bool_or(is_individual), false) AS is_individual,
    coalesce(bool_or(is_individual_in_mirror), false) AS is_individual_in_mirror,
    coalesce(bit_or(differing), 0) AS differing,
    coalesce(bool_or(has_unplaced_rows), false) AS has_unplaced_rows
FROM topic_parts
GROUP BY topic;

-- Topics with individual acknowledgements: the group passed only the positions that a row covers.
CREATE TABLE individual_topics AS SELECT topic FROM topics WHERE is_individual AND topic IS NOT NULL;
