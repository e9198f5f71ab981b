-- What a break is, its id and that of its incident, and its admissible causes.

-- What breaks, and what its class alone says. `class` is null where no rule holds.
CREATE MACRO is_break(class, flags) AS
    class NOT IN ('DELIVERED', 'RECOVERED', 'NOT_SENT', 'FILTERED', 'DEAD_LETTERED', 'COMPACTED')
        AND NOT (class = 'IN_FLIGHT' AND NOT list_contains(flags, 'OVERDUE'))
    OR list_contains(flags, 'PHANTOM_ABORTED');
CREATE MACRO is_doubled_in_log(class, flags) AS class = 'LOG_DUPLICATE' OR list_contains(flags, 'inherited');

-- A break's id and its incident's: 32 hex digits that name the JSON. `judged` is the pipeline and its group.
CREATE MACRO json_judged() AS
    '{' || json_field('col1', getvariable('pipeline')) || ',' || json_field('col2', getvariable('judged_group')) || '}';
CREATE MACRO break_id(kind, class, subject) AS left(sha256('{' || concat_ws(',',
    '"col1":' || json_judged(), json_field('kind', kind),
    CASE WHEN kind <> 'message' THEN json_field('col3', class) END, json_field('subject', subject)) || '}'), 32);
CREATE MACRO incident_id(class, locus, cause, a_topic, a_partition, run, flags, first_offset) AS left(sha256(
    '{' || concat_ws(',', '"col1":{' || concat_ws(',', '"col1":' || json_judged(),
        json_field('class', class), json_field('locus', locus), json_field('cause', cause),
        json_field('topic', a_topic), json_field('partition', a_partition),
        json_field('col7', CAST(run AS VARCHAR)), json_field('col8', array_to_string(flags, ','))) || '}',
    json_field('incident_start', first_offset)) || '}'), 32);
-- The subject of a break: a field that is null is left out, as everywhere.
CREATE MACRO subject_of(a_topic, a_partition, one := NULL, two := NULL, three := NULL, four := NULL) AS
    '{' || concat_ws(',', json_field('topic', a_topic), json_field('partition', a_partition), one, two, three, four)
        || '}';

-- The rows and times that say what caused a break.
CREATE MACRO clues(
    sent_at := NULL, acked_at := NULL, is_plain_overlap := NULL, leader_epoch := NULL, generation_before := NULL,
    generation := NULL, before_at := NULL, committed_at := NULL, is_beyond_end := NULL
) AS {
    'sent_at': sent_at::TIMESTAMP, 'acked_at': acked_at::TIMESTAMP, 'is_plain_overlap': is_plain_overlap::BOOLEAN,
    'leader_epoch': leader_epoch::INTEGER, 'generation_before': generation_before::BIGINT,
    'generation': generation::BIGINT, 'before_at': before_at::TIMESTAMP, 'committed_at': committed_at::TIMESTAMP,
    'is_beyond_end': is_beyond_end::BOOLEAN};
CREATE MACRO commit_row(a_topic, a_partition, a_first_offset, an_offset, at_time, a_metadata) AS {
    'topic': a_topic, 'partition': a_partition, 'first_offset': a_first_offset::BIGINT,
    'committed_offset': an_offset::BIGINT, 'committed_at': at_time::TIMESTAMP, 'metadata': a_metadata::VARCHAR};

-- The causes that a kind of break admits, before evidence decides between them; a loss may begin its partition.
CREATE MACRO fitting_causes(class, locus, flags, is_read_by_two, is_superseded, begins_partition) AS CASE
    WHEN is_doubled_in_log(class, flags) THEN ['retry without idempotence', 'producer restart or application resend']
    WHEN class = 'OUTPUT_DUPLICATE' AND is_read_by_two OR class = 'REDELIVERY'
        THEN ['process before commit', 'zombie after rebalance', 'offset reset to earliest or latest']
    WHEN class <> 'LOST' THEN []
    WHEN list_contains(flags, 'EXPIRED')
        THEN ['retention overrun', 'offset reset to earliest or latest', 'group offsets expired']
    WHEN locus = 'broker' THEN ['leader failover or unclean election', 'topic recreated']
    WHEN locus = 'consumer' THEN ['commit before process', 'swallowed poison record',
        'offset reset to earliest or latest', 'group offsets expired']
    WHEN locus = 'broker → consumer' THEN ['offset reset to earliest or latest', 'group offsets expired']
    WHEN locus = 'sink' THEN ['prepared transaction not committed']
    WHEN is_superseded THEN ['compaction']
    ELSE [] END || CASE WHEN begins_partition THEN ['partition count changed'] ELSE [] END;
-- A proven cause leaves no other open; a doubted one stays the first of those that fit.
CREATE MACRO open_causes(cause, doubted, fitting) AS CASE
    WHEN cause <> 'unknown' THEN [cause]
    WHEN doubted <> 'unknown' THEN [doubted] || list_filter(fitting, lambda fits: fits <> doubted)
    ELSE fitting END;

-- A length of time in words, to the second, as limits of a statement say it.
CREATE MACRO in_words(seconds) AS coalesce(nullif(concat_ws(' ',
    CASE WHEN seconds >= 3600 THEN seconds // 3600 || ' h' END,
    CASE WHEN seconds // 60 % 60 > 0 THEN seconds // 60 % 60 || ' min' END,
    CASE WHEN seconds % 60 > 0 THEN seconds % 60 || ' s' END), ''), '0 s');
