-- Clocks of two hosts that differ too much: an effect lies before its send, its read or the broker's timestamp by more
-- than clocks may differ. Causes that compare times of the consumer with times of the broker are then undecided.
-- Computed only where there is such a cause.
-- Needs: caused_messages, clock_parts. Source: taxonomy.md 8, 12.
CREATE TABLE comparing_parts AS
SELECT 1 AS one FROM caused_messages
WHERE cause IN ('commit before process', 'process before commit', 'retention overrun') LIMIT 1;

CREATE TABLE clocks_apart AS
SELECT place, 'effects lie before ' || CASE place
        WHEN 1 THEN 'their sends' WHEN 2 THEN 'their reads' ELSE 'the broker''s own times of their records' END
    || ' by up to ' || in_words(CAST(round_even(micros / 1e6, 0) AS BIGINT)) AS shown
FROM (SELECT place, max(micros) AS micros FROM comparing_parts CROSS JOIN clock_parts GROUP BY place)
WHERE micros IS NOT NULL;

-- What the statement says of causes that are left open.
CREATE TABLE cause_limit_parts AS
SELECT
    'causes that compare the consumer''s clock with the broker''s are left open: '
    || string_agg(shown, '; ' ORDER BY place) || ', where clock_skew allows '
    || in_words(CAST(round_even(epoch(getvariable('clock_skew')), 0) AS BIGINT)) AS sentence
FROM clocks_apart HAVING count(*) > 0;
