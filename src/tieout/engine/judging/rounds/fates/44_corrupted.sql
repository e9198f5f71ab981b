-- CORRUPTED_VALUE, _KEY, _HEADER, _TIMESTAMP: the identity is equal, but the content differs between producer, log and
-- output. Null is a value where it is known to be one; where it may be one or another, the difference is undecided and
-- the message unverifiable.
-- Needs: messages, differing_contents. Source: taxonomy.md 1 (null contents) and 3.
CREATE TABLE judged_contents AS
SELECT name, bit
FROM (VALUES ('payload_hash', 1), ('key_hash', 2), ('header_hash', 4), ('record_timestamp', 8)) AS v (name, bit)
WHERE (NOT is_by_content() OR name = 'payload_hash')
    AND (has_column('delivered', name) OR has_column('read', name) OR has_column('log', name));

-- Most sides have one value, taken from the least and the greatest; the others are compared by row.
CREATE TABLE content_bounds AS
SELECT message_key, name,
    min(value) FILTER (side = 'sent') AS sent, max(value) FILTER (side = 'sent') AS last_sent,
    min(value) FILTER (side = 'logged') AS logged, max(value) FILTER (side = 'logged') AS last_logged,
    min(value) FILTER (side = 'output') AS output, max(value) FILTER (side = 'output') AS last_output,
    min(value) FILTER (side = 'part') AS part, max(value) FILTER (side = 'part') AS last_part
FROM differing_contents
GROUP BY message_key, name;

CREATE TABLE content_facts AS
WITH marked AS (
    SELECT *, coalesce(sent <> last_sent OR logged <> last_logged OR output <> last_output OR part <> last_part, false)
        AS has_several
    FROM content_bounds
),
shown AS (
    SELECT d.message_key, d.name, d.value,
        bool_or(d.side = 'sent') AS is_sent,
        bool_or(d.side = 'logged') AS is_logged,
        bool_or(d.side = 'output') AS is_output,
        bool_or(d.side = 'part') AS is_part
    FROM differing_contents AS d
    SEMI JOIN (FROM marked WHERE has_several) AS m ON m.message_key = d.message_key AND m.name = d.name
    GROUP BY d.message_key, d.name, d.value
)
SELECT message_key, name,
    sent IS NOT NULL AS has_sent,
    logged IS NOT NULL AS has_logged,
    output IS NOT NULL AS has_output,
    logged IS NOT NULL AND logged IS DISTINCT FROM sent AS is_logged_other,
    output IS NOT NULL AND output IS DISTINCT FROM sent AS is_output_other,
    output IS NOT NULL AND output IS DISTINCT FROM logged AS is_output_other_than_logged,
    coalesce(part = sent, false) AS has_sent_part,
    coalesce(part = logged, false) AS has_logged_part,
    shows_empty(logged, 'produced', name) AS is_logged_sent_empty,
    shows_empty(output, 'produced', name) AS is_output_sent_empty,
    shows_empty(sent, 'log', name) AS is_sent_logged_empty,
    shows_empty(output, 'log', name) AS is_output_logged_empty,
    shows_empty(sent, 'delivered', name) OR shows_empty(sent, 'read', name) AS is_sent_output_empty,
    shows_empty(logged, 'delivered', name) OR shows_empty(logged, 'read', name) AS is_logged_output_empty
FROM marked
WHERE NOT has_several
UNION ALL
SELECT message_key, name,
    bool_or(is_sent),
    bool_or(is_logged),
    bool_or(is_output),
    bool_or(is_logged AND NOT is_sent),
    bool_or(is_output AND NOT is_sent),
    bool_or(is_output AND NOT is_logged),
    bool_or(is_part AND is_sent),
    bool_or(is_part AND is_logged),
    bool_or(is_logged AND shows_empty(value, 'produced', name)),
    bool_or(is_output AND shows_empty(value, 'produced', name)),
    bool_or(is_sent AND shows_empty(value, 'log', name)),
    bool_or(is_output AND shows_empty(value, 'log', name)),
    bool_or(is_sent AND (shows_empty(value, 'delivered', name) OR shows_empty(value, 'read', name))),
    bool_or(is_logged AND (shows_empty(value, 'delivered', name) OR shows_empty(value, 'read', name)))
FROM shown
GROUP BY message_key, name;

CREATE TABLE corrupted AS
WITH contents_to_compare AS (
    SELECT m.message_key, j.name,
        j.name <> 'record_timestamp' OR NOT m.is_log_append AS is_kept,
        m.read_nulls & j.bit <> 0 AS has_read_nulls,
        m.sent_nulls & j.bit <> 0 AS is_sent_null, m.sent_lacking & j.bit <> 0 AS is_sent_lacking,
        m.logged_nulls & j.bit <> 0 AS is_logged_null, m.logged_lacking & j.bit <> 0 AS is_logged_lacking,
        m.output_nulls & j.bit <> 0 AS is_output_null, m.output_lacking & j.bit <> 0 AS is_output_lacking
    FROM messages AS m, judged_contents AS j
    WHERE m.attempts > 0 AND j.bit & m.differing <> 0
),
paired AS (
    SELECT a.message_key, a.name, a.is_kept,
        {'has_value': coalesce(f.has_sent, false), 'is_null': is_sent_null, 'is_lacking': is_sent_lacking} AS sent,
        {'has_value': coalesce(f.has_logged, false), 'is_null': is_logged_null, 'is_lacking': is_logged_lacking}
            AS logged,
        {'has_value': coalesce(f.has_output, false), 'is_null': is_output_null, 'is_lacking': is_output_lacking}
            AS output,
        {'is_other': coalesce(f.is_logged_other, false), 'is_part': false,
            'is_earlier_empty': is_sent_null AND coalesce(f.is_logged_sent_empty, false),
            'is_later_empty': is_logged_null AND coalesce(f.is_sent_logged_empty, false)} AS logged_sent,
        {'is_other': coalesce(f.is_output_other, false),
            'is_part': fans_out() AND NOT has_read_nulls AND coalesce(f.has_sent_part, false),
            'is_earlier_empty': is_sent_null AND coalesce(f.is_output_sent_empty, false),
            'is_later_empty': is_output_null AND coalesce(f.is_sent_output_empty, false)} AS output_sent,
        {'is_other': coalesce(f.is_output_other_than_logged, false),
            'is_part': fans_out() AND NOT has_read_nulls AND coalesce(f.has_logged_part, false),
            'is_earlier_empty': is_logged_null AND coalesce(f.is_output_logged_empty, false),
            'is_later_empty': is_output_null AND coalesce(f.is_logged_output_empty, false)} AS output_logged
    FROM contents_to_compare AS a
    LEFT JOIN content_facts AS f ON f.message_key = a.message_key AND f.name = a.name
),
judged AS (
    SELECT message_key, name, is_content_known(name, logged) AS is_logged_known,
        is_kept AND content_differs(name, logged, sent, logged_sent) AS is_in_broker,
        CASE WHEN is_kept AND is_content_known(name, sent) THEN content_differs(name, output, sent, output_sent)
            ELSE content_differs(name, output, logged, output_logged) END AS is_in_output,
        is_kept AND (content_may_differ(name, logged, sent, logged_sent)
                OR content_may_differ(name, output, sent, output_sent))
            OR NOT (is_kept AND is_content_known(name, sent))
                AND content_may_differ(name, output, logged, output_logged) AS is_open
    FROM paired
),
located AS (
    SELECT message_key, name, is_open,
        CASE WHEN is_in_broker THEN 'producer → broker'
            WHEN NOT is_in_output THEN NULL
            WHEN is_logged_known THEN 'consumer or sink'
            ELSE 'unknown' END AS locus
    FROM judged
    WHERE is_in_broker OR is_in_output OR is_open
)
SELECT message_key,
    max(locus) FILTER (name = 'payload_hash') AS value_locus,
    max(locus) FILTER (name = 'key_hash') AS key_locus,
    max(locus) FILTER (name = 'header_hash') AS header_locus,
    max(locus) FILTER (name = 'record_timestamp') AS timestamp_locus,
    bool_or(is_open) AS is_content_open
FROM located
GROUP BY message_key;

CREATE VIEW with_corruptions AS
SELECT m.*, c.* EXCLUDE (message_key, is_content_open), coalesce(c.is_content_open, false) AS is_content_open
FROM with_losses AS m LEFT JOIN corrupted AS c ON c.message_key = m.message_key;
