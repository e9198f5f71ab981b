-- Claims: rows (topic, partition, offset, message_key, payload_hash, rank, is_doubtful, ago, name, session, state,
-- open_until, recorded_at) that state which message a position belongs to. Rank: 0 a record, 1 a read, 2 a send, 3 a
-- record without id that nobody sent. Arguments are names of tables. Source: interpretations.md 17, 38 and 83.

CREATE MACRO fits_claim(claim_name, claim_session, shown_name, shown_session) AS
    coalesce(claim_name = shown_name, true) AND coalesce(claim_session = shown_session, true);
CREATE MACRO shown_name(message_id, payload_hash) AS CASE WHEN is_by_content() THEN payload_hash ELSE message_id END;
CREATE MACRO shown_session(session) AS CASE WHEN is_session_scoped() THEN session END;
-- Claims of sends: the acknowledged first, of these the latest.
CREATE MACRO send_claims(sends) AS TABLE
    SELECT topic, "partition", "offset", message_key, payload_hash, 2 AS rank, outcome <> 'acked' AS is_doubtful,
        -epoch_us(coalesce(completed_at, attempted_at, never())) AS ago,
        shown_name(message_id, payload_hash) AS name, shown_session(producer_session) AS session,
        NULL::VARCHAR AS state, NULL::TIMESTAMP AS open_until, NULL::TIMESTAMP AS recorded_at,
        says_failed, outcome, log_state
    FROM query_table(sends) WHERE "offset" IS NOT NULL;
-- One row per claimed position; where `message_key` is not `last_key` several messages claim it.
CREATE MACRO owners_among(claims) AS TABLE
    SELECT topic, "partition", "offset", min(message_key) AS message_key, max(message_key) AS last_key,
        min(name) AS name, min(session) AS session, min(rank) = 3 AS is_nameless,
        max(state) AS held_state, max(open_until) AS held_until, max(recorded_at) AS held_at
    FROM query_table(claims) GROUP BY topic, "partition", "offset";
-- Where several messages claim a position: a row per message and payload that it shows there, the best claim first.
CREATE MACRO ambiguous_among(claims, owners) AS TABLE
    WITH ambiguous AS (SELECT c.* FROM query_table(claims) AS c SEMI JOIN (
            SELECT topic, "partition", "offset" FROM query_table(owners) WHERE message_key <> last_key) AS o
        ON same_partition(c.topic, c."partition", o.topic, o."partition") AND c."offset" = o."offset"),
    best AS (
        SELECT topic, "partition", "offset", message_key, min(name) AS name, min(session) AS session,
            min(rank) = 3 AS is_nameless, min((rank, is_doubtful, ago)) AS turn
        FROM ambiguous GROUP BY topic, "partition", "offset", message_key),
    shown AS (
        SELECT DISTINCT topic, "partition", "offset", message_key, CASE WHEN rank < 3 THEN payload_hash END AS content
        FROM ambiguous)
    SELECT b.* REPLACE (row_number() OVER (
            PARTITION BY b.topic, b."partition", b."offset" ORDER BY turn, b.message_key, content) AS turn), content
    FROM best AS b JOIN shown AS s
        ON same_partition(b.topic, b."partition", s.topic, s."partition")
        AND b."offset" = s."offset" AND b.message_key = s.message_key;
-- At ambiguous positions, the best claim that fits what a row shows; one of the row's payload comes first. Least turns by
-- name, session and content, known or any, let a row look up the few that fit it, however many claim.
CREATE MACRO choices_among(rows, ambiguous) AS TABLE
    WITH shown AS (
        SELECT DISTINCT r.topic, r."partition", r."offset", payload_hash,
            shown_name(message_id, payload_hash) AS shown_name, shown_session(producer_session) AS shown_session
        FROM query_table(rows) AS r SEMI JOIN query_table(ambiguous) AS c
            ON same_partition(r.topic, r."partition", c.topic, c."partition") AND r."offset" = c."offset"),
    best AS (
        SELECT topic, "partition", "offset", name, session, content, grouping(name) AS any_name,
            grouping(session) AS any_session, grouping(content) AS any_content, min(turn) AS turn
        FROM query_table(ambiguous) GROUP BY topic, "partition", "offset", CUBE (name, session, content)),
    wanted AS (
        SELECT *, unnest([payload_hash, NULL]) AS content FROM (
            SELECT *, unnest([shown_session, NULL]) AS session FROM (
                SELECT *, unnest([shown_name, NULL]) AS name FROM shown))),
    chosen AS (
        SELECT a.topic, a."partition", a."offset", payload_hash, shown_name, shown_session,
            coalesce(min(turn) FILTER (any_content = 0), min(turn)) AS turn
        FROM wanted AS a JOIN best AS b
            ON same_partition(a.topic, a."partition", b.topic, b."partition") AND a."offset" = b."offset"
            AND a.name IS NOT DISTINCT FROM b.name AND (shown_name IS NULL) = (any_name = 1)
            AND a.session IS NOT DISTINCT FROM b.session AND (shown_session IS NULL) = (any_session = 1)
            AND a.content IS NOT DISTINCT FROM b.content AND (a.content IS NULL) = (any_content = 1)
        GROUP BY a.topic, a."partition", a."offset", payload_hash, shown_name, shown_session)
    SELECT f.*, c.message_key, c.name, c.is_nameless FROM chosen AS f JOIN query_table(ambiguous) AS c
        ON same_partition(f.topic, f."partition", c.topic, c."partition") AND f."offset" = c."offset"
        AND f.turn = c.turn;
-- The best claim on each row's position that the row does not contradict.
CREATE MACRO with_owner(rows, owners, choices) AS TABLE
    SELECT r.*, o.held_state, o.held_until, o.held_at,
        CASE WHEN o.message_key <> o.last_key THEN c.message_key
            WHEN fits_claim(o.name, o.session, shown_name(r.message_id, r.payload_hash),
                shown_session(r.producer_session)) THEN o.message_key END AS owner,
        CASE WHEN o.message_key <> o.last_key THEN c.name WHEN owner IS NOT NULL THEN o.name END AS owner_name,
        owner IS NOT NULL AND CASE WHEN o.message_key <> o.last_key THEN c.is_nameless ELSE o.is_nameless END
            AS is_nameless
    FROM query_table(rows) AS r
    LEFT JOIN query_table(owners) AS o
        ON same_partition(r.topic, r."partition", o.topic, o."partition") AND r."offset" = o."offset"
    LEFT JOIN query_table(choices) AS c
        ON same_partition(r.topic, r."partition", c.topic, c."partition") AND r."offset" = c."offset"
        AND r.payload_hash IS NOT DISTINCT FROM c.payload_hash
        AND shown_name(r.message_id, r.payload_hash) IS NOT DISTINCT FROM c.shown_name
        AND shown_session(r.producer_session) IS NOT DISTINCT FROM c.shown_session;

-- Rows with their owner and `by_name`: the key that their own id and payload, or by position their position and payload
-- give; null where that is not decided. Where ids are a session's, one that its session did not send is nobody's.
CREATE MACRO with_names(rows, owners, choices) AS TABLE
    SELECT r.*,
        CASE WHEN is_by_position() THEN CASE WHEN r."offset" IS NOT NULL THEN
                position_content_key(r.topic, r."partition", r."offset",
                    CASE WHEN p."offset" IS NOT NULL THEN coalesce(c.payload_hash, p.held) END) END
            WHEN is_by_content() OR r.message_id IS NULL THEN NULL
            WHEN i.message_id IS NULL THEN id_key(r.message_id)
            WHEN f.first_key = f.last_key THEN f.first_key
            WHEN i.first_key = i.last_key AND (r.payload_hash IS NULL
                OR i.first_payload IS NOT DISTINCT FROM i.last_payload) THEN i.first_key
        END AS by_name
    FROM with_owner(rows, owners, choices) AS r
    LEFT JOIN reused_id_messages AS i
        ON r.message_id = i.message_id AND shown_session(r.producer_session) IS NOT DISTINCT FROM i.session
    LEFT JOIN reused_id_payloads AS f
        ON r.message_id = f.message_id AND shown_session(r.producer_session) IS NOT DISTINCT FROM f.session
        AND r.payload_hash = f.payload_hash
    LEFT JOIN conflicting_positions AS p
        ON same_partition(r.topic, r."partition", p.topic, p."partition") AND r."offset" = p."offset"
    LEFT JOIN conflicting_payloads AS c
        ON same_partition(r.topic, r."partition", c.topic, c."partition") AND r."offset" = c."offset"
        AND r.payload_hash = c.payload_hash;
