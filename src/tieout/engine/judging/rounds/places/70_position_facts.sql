-- Facts over all own positions of a message without an effect: whether the group passed them, commits cover them, the
-- log expired, covers or compacted them, and the first commit that covers one. Positions that the log shows to be
-- another message's are covered, or not, as its own are. With individual acknowledgements a position is passed by a
-- commit that covers it, or by its own read or effect, and none is jumped.
-- Needs: the tables above, consumer_positions, deleted_topics. Source: taxonomy.md 2 (due), 3 and 8, item 7.
CREATE TABLE seen_positions AS
SELECT p.topic, p."partition", p."offset", max(coalesce(p."at", never())) AS seen_at
FROM progress AS p
SEMI JOIN individual_topics AS i ON p.topic = i.topic
SEMI JOIN checked_positions AS a ON same_position(p.topic, p."partition", p."offset", a.topic, a."partition", a."offset")
WHERE p."by" IN ('effect', 'read') AND NOT getvariable('is_queue')
GROUP BY p.topic, p."partition", p."offset";

CREATE TABLE denied_facts AS
SELECT message_key, bool_and(NOT is_uncovered) AS is_covered_by_log
FROM message_positions
WHERE is_asserted AND NOT is_own AND is_declared('log')
GROUP BY message_key;

CREATE TABLE position_facts AS
SELECT
    message_key,
    bool_and(is_passed OR went_unread) AS is_passed,
    bool_and("offset" < passed AND NOT is_individual) FILTER (WHERE is_visible) AS was_jumped,
    bool_and(went_unread) AS went_unread,
    bool_or(CASE WHEN is_individual THEN has_cover ELSE coalesce("offset" < committed, false) END) AS is_committed,
    bool_and(is_expired) AS is_expired,
    bool_and(is_covered OR went_unread) AS is_covered_by_log,
    bool_and(is_superseded) AS is_superseded,
    bool_and(is_compacted) AS is_compacted,
    bool_and(was_committed_first) AS was_committed_first,
    bool_or(may_have_passed_first) AS may_have_passed_first,
    max(acknowledged_at) AS acknowledged_at,
    arg_min(cover, create_sort_key(
        cover.committed_at, 'ASC NULLS FIRST', cover.committed_offset, 'ASC NULLS FIRST',
        cover.topic, 'ASC NULLS FIRST', cover."partition", 'ASC NULLS FIRST', cover."offset", 'ASC NULLS FIRST',
        cover.first_offset, 'ASC NULLS FIRST', cover.is_next, 'ASC NULLS FIRST'))
        FILTER (WHERE cover IS NOT NULL) AS cover
FROM (
    SELECT *, is_deleted AND NOT is_passed AS went_unread
    FROM (
        SELECT
            p.message_key,
            p."offset",
            p.is_visible,
            r.passed,
            r.committed,
            i.topic IS NOT NULL AS is_individual,
            c.committed_offset IS NOT NULL AS has_cover,
            CASE WHEN getvariable('is_queue') OR i.topic IS NOT NULL THEN has_cover
                    OR (e."offset" IS NOT NULL AND NOT comes_before(e.seen_at, p.sent_at))
                ELSE coalesce(p."offset" <= r.passed, false) END AS is_passed,
            d.topic IS NOT NULL AS is_deleted,
            coalesce(l.is_expired, false) AS is_expired,
            coalesce(l.is_covered, false) AS is_covered,
            s.message_key IS NOT NULL AS is_superseded,
            coalesce(s.is_compacted, false) AS is_compacted,
            coalesce(s.was_committed_first, false) AS was_committed_first,
            coalesce(s.may_have_passed_first, false) AS may_have_passed_first,
            CASE WHEN getvariable('is_queue') AND c.committed_offset IS NOT NULL THEN
                coalesce(c.committed_at, c.taken_at, getvariable('coverage')['committed'].complete_until) END
                AS acknowledged_at,
            CASE WHEN p.is_visible AND c.committed_offset IS NOT NULL THEN {
                'committed_at': c.committed_at, 'committed_offset': c.committed_offset, 'topic': p.topic,
                'partition': p."partition", 'offset': p."offset", 'first_offset': c.first_offset,
                'is_next': c.is_next} END AS cover
        FROM checked_positions AS p
        LEFT JOIN position_covers AS c
            ON p.message_key = c.message_key
            AND same_position(p.topic, p."partition", p."offset", c.topic, c."partition", c."offset")
        LEFT JOIN log_positions AS l
            ON p.message_key = l.message_key
            AND same_position(p.topic, p."partition", p."offset", l.topic, l."partition", l."offset")
        LEFT JOIN compacted_positions AS s
            ON p.message_key = s.message_key
            AND same_position(p.topic, p."partition", p."offset", s.topic, s."partition", s."offset")
        LEFT JOIN consumer_positions AS f ON same_partition(p.topic, p."partition", f.topic, f."partition")
        LEFT JOIN positions_since AS y
            ON same_partition(p.topic, p."partition", y.topic, y."partition") AND p.sent_at = y.sent_at
        LEFT JOIN deleted_topics AS d ON p.topic = d.topic
        LEFT JOIN individual_topics AS i ON p.topic = i.topic
        LEFT JOIN seen_positions AS e
            ON same_position(p.topic, p."partition", p."offset", e.topic, e."partition", e."offset"),
        LATERAL (SELECT
            CASE WHEN y.sent_at IS NULL THEN f.committed ELSE y.committed END AS committed,
            CASE WHEN getvariable('is_queue') THEN committed - 1 WHEN y.sent_at IS NULL THEN f.passed ELSE y.passed END
                AS passed) AS r
    )
)
GROUP BY message_key;
