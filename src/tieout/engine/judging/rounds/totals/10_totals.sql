-- The small tables of a statement: the sums of what all buckets counted. Facts of one log partition are in one bucket,
-- and are passed on unchanged.
-- Needs: the parts of all buckets. Source: taxonomy.md 5.
CREATE TABLE partition_counts AS
SELECT topic, "partition", coalesce(sum(COLUMNS(* EXCLUDE (topic, "partition"))), 0)::BIGINT AS "\0"
FROM partition_count_parts
GROUP BY topic, "partition";

CREATE TABLE tally AS
SELECT topic, is_non_message, is_covered, class, held, doubtful, sum(count)::BIGINT AS count
FROM tally_parts
GROUP BY ALL;

CREATE TABLE topic_suspicions AS
SELECT p.*, coalesce(e.early, 0) AS early, e.early_by
FROM (
    SELECT topic,
        min(COLUMNS('_of_(send|row)$')) AS "\0",
        coalesce(bool_or(COLUMNS('_(meets|sent|shown)$|^CORRUPTED_')), false) AS "\0",
        coalesce(sum(COLUMNS('^(lost|nameless|followed|met_early|early_here)$')), 0)::BIGINT AS "\0",
        min(least_after) AS least_after
    FROM topic_suspicion_parts
    GROUP BY topic
) AS p
LEFT JOIN (
    SELECT topic, count(*) AS early, quantile_disc(early_by, 0.5) AS early_by FROM early_parts GROUP BY topic
) AS e ON p.topic IS NOT DISTINCT FROM e.topic;

CREATE TABLE hash_forms AS
SELECT name, ledger, topic,
    list_sort(list_distinct(flatten(list(lengths)))) AS lengths,
    bool_or(COLUMNS('^has_')) AS "\0",
    min(example) AS example
FROM hash_form_parts
GROUP BY name, ledger, topic;

CREATE TABLE undecided_orders AS
SELECT topic, sum(unnumbered)::BIGINT AS unnumbered, sum(uncompleted)::BIGINT AS uncompleted, sum(close)::BIGINT AS close,
    first(example ORDER BY example."partition" NULLS FIRST, example."offset", example.message_id NULLS FIRST) AS example
FROM undecided_order_parts
GROUP BY topic;

CREATE TABLE given_twice AS
SELECT topic, sum(names)::BIGINT AS names,
    first(example ORDER BY example."partition" NULLS FIRST, example."offset" NULLS FIRST, example.message_id) AS example
FROM given_twice_parts
GROUP BY topic;

-- By topic, how many of the kept names are broken, and how many of those have a name of the same form on the other side.
CREATE TABLE spellings AS
WITH kept AS (
    SELECT *, row_number() OVER (PARTITION BY is_sent ORDER BY place, topic, name) AS turn FROM spelling_parts
), compared AS (
    SELECT * FROM kept WHERE place <= coalesce((SELECT min(place) FROM kept WHERE turn = most_compared()), place)
), matched_forms AS (
    SELECT c.topic, c.is_sent, c.name, c.is_broken, min(o.name) AS other
    FROM compared AS c
    LEFT JOIN compared AS o ON c.form = o.form AND c.is_sent <> o.is_sent AND c.name <> o.name
    GROUP BY ALL
)
SELECT topic,
    count_if(is_sent AND is_broken) AS lost,
    count_if(is_sent AND is_broken AND other IS NOT NULL) AS lost_met,
    count_if(NOT is_sent AND is_broken) AS strange,
    count_if(NOT is_sent AND is_broken AND other IS NOT NULL) AS strange_met,
    min({'sent': CASE WHEN is_sent THEN name ELSE other END, 'shown': CASE WHEN is_sent THEN other ELSE name END})
        FILTER (WHERE other IS NOT NULL) AS example
FROM matched_forms
GROUP BY topic
HAVING example IS NOT NULL;

CREATE TABLE latency AS
SELECT coalesce(sum(messages), 0)::BIGINT AS count, sum(micros)::DECIMAL(38, 0) AS micros,
    quantile_disc(sampled_micros, 0.5) AS p50, quantile_disc(sampled_micros, 0.95) AS p95, quantile_disc(sampled_micros, 0.99) AS p99,
    CASE WHEN count_if(sampled_micros IS NOT NULL AND longest IS NULL) = 0 THEN max(longest) END AS max,
    CASE WHEN getvariable('latency_share') > 1 THEN count(sampled_micros) END AS sample
FROM latency_parts;

CREATE TABLE incidents AS
SELECT incident_id, class, locus, cause, topic, "partition",
    min(first_position) AS first_position, max(last_position) AS last_position, sum(breaks)::BIGINT AS breaks,
    is_aborted_effect
FROM incident_parts
GROUP BY incident_id, class, locus, cause, topic, "partition", is_aborted_effect
ORDER BY breaks DESC, incident_id
LIMIT 10000;

CREATE TABLE breaks_total AS SELECT sum(breaks)::BIGINT AS breaks FROM breaks_total_parts;

CREATE TABLE cause_limits AS SELECT DISTINCT sentence FROM cause_limit_parts;

CREATE TABLE comparing AS SELECT DISTINCT one FROM comparing_parts;
