-- Each partition's bounds: a covering log holds what lies in [log_start, log_end). The latest statement of each bound
-- counts, or the rows where none states it; only `stated_start` proves that lower positions existed. In a sparse
-- partition the number after a record's position is no position, so that `stated_end` alone is one.
-- Needs: evidence_log. Source: taxonomy.md 1 (Visible) and 7, trap 1.
CREATE TABLE log_bounds AS
WITH stated AS (
    SELECT topic, "partition", max(observed_at) AS observed_at,
        latest_statement(observed_at, log_start_offset) AS log_start,
        latest_statement(observed_at, last_stable_offset) AS stable,
        latest_statement(observed_at, end_offset) AS log_end,
        lower(latest_statement(observed_at, cleanup_policy)) AS cleanup_policy,
        coalesce(bool_or(is_sparse), false) AS is_sparse,
        coalesce(max(leader_epoch) > 0, false) AS has_epochs,
        min("offset") AS lowest_offset, max("offset") AS last_offset,
        min("offset") FILTER (lower(transaction_state) = 'open') AS lowest_open,
        coalesce(bool_or(lower(transaction_state) <> 'none'), false) AS has_states,
        coalesce(bool_or(is_control), false) AS has_markers
    FROM evidence_log GROUP BY topic, "partition")
SELECT topic, "partition",
    coalesce(log_start, lowest_offset) AS log_start,
    stated.log_start AS stated_start,
    stated.log_end AS stated_end,
    coalesce(stated.log_end, last_offset + 1, greatest(stated.log_start, stable)) AS log_end,
    coalesce(stable, lowest_open) AS first_unstable,
    -- Some record is in a transaction; some control record was read.
    last_offset, observed_at, cleanup_policy, is_sparse, has_epochs, has_states, has_markers
FROM stated;
