-- The schema as the migrations leave it; a test compares the two in a real PostgreSQL. Change both together.

CREATE SCHEMA tieout;

CREATE TABLE tieout.schema_migration (
    version integer PRIMARY KEY CHECK (version > 0),
    name text NOT NULL,
    digest text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE tieout.schema_migration IS 'Which migrations this database has, and of which content.';

CREATE FUNCTION tieout.statement_sums(statement jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
    SELECT jsonb_build_object(
        'accepted', coalesce(sum((told ->> 'accepted')::bigint), 0),
        'lost', coalesce(sum((told ->> 'lost')::bigint), 0),
        'in_flight', coalesce(sum((told ->> 'in_flight')::bigint), 0),
        'first_effects', coalesce(sum((told ->> 'first_effects')::bigint), 0),
        'further_effects', coalesce(sum((told ->> 'further_effects')::bigint), 0),
        'late', coalesce(greatest(
            (statement #>> '{classes,LATE}')::bigint, (statement #>> '{flags,LATE}')::bigint
        ), 0) + coalesce(greatest(
            (statement #>> '{classes,OVERDUE}')::bigint, (statement #>> '{flags,OVERDUE}')::bigint
        ), 0)
    )
    FROM jsonb_path_query(statement, '$.partitions[*]') AS told
);
COMMENT ON FUNCTION tieout.statement_sums IS 'What plots show of a statement: sums over its partitions, and what came late.';

CREATE TABLE tieout.run (
    run_id uuid PRIMARY KEY,
    -- Both stand in a unique index, and a B-tree entry holds at most 2,704 bytes.
    pipeline text NOT NULL CHECK (pipeline <> '' AND octet_length(pipeline) <= 500),
    consumer_group text NOT NULL CHECK (octet_length(consumer_group) <= 1000),
    window_start timestamptz NOT NULL,
    window_end timestamptz NOT NULL,
    guarantee text NOT NULL CHECK (guarantee IN ('at_most_once', 'at_least_once', 'exactly_once')),
    contract_digest text NOT NULL,
    contract jsonb NOT NULL CHECK (jsonb_typeof(contract) = 'object'),
    verdict text NOT NULL CHECK (verdict IN ('KEPT', 'BROKEN', 'PENDING', 'UNKNOWN')),
    final_verdict text CHECK (final_verdict IN ('KEPT', 'BROKEN', 'PENDING', 'UNKNOWN')),
    reasons jsonb NOT NULL CHECK (jsonb_typeof(reasons) = 'array'),
    statement jsonb NOT NULL CHECK (jsonb_typeof(statement) = 'object'),
    breaks_total bigint NOT NULL CHECK (breaks_total >= 0),
    breaks_truncated boolean NOT NULL,
    breaks_read bigint NOT NULL DEFAULT 0 CHECK (breaks_read >= 0),
    dag_id text,
    dag_run_id text,
    try_number integer,
    tieout_version text NOT NULL,
    generated_at timestamptz NOT NULL,
    published_at timestamptz NOT NULL DEFAULT now(),
    checked_at timestamptz,
    is_current boolean NOT NULL DEFAULT false,
    latency jsonb GENERATED ALWAYS AS (statement -> 'latency') STORED,
    sums jsonb GENERATED ALWAYS AS (tieout.statement_sums(statement)) STORED,
    CONSTRAINT run_window_check CHECK (window_end > window_start),
    CONSTRAINT run_checked_check CHECK ((final_verdict IS NULL) = (checked_at IS NULL))
);
COMMENT ON TABLE tieout.run IS 'One statement about one window of one pipeline.';
COMMENT ON COLUMN tieout.run.verdict IS 'What the judge decided from the statement.';
COMMENT ON COLUMN tieout.run.final_verdict IS 'The verdict after the independent checks; null until they have run.';
COMMENT ON COLUMN tieout.run.breaks_truncated IS 'Whether the run found more breaks than are stored here.';
COMMENT ON COLUMN tieout.run.breaks_read IS 'How many of its breaks went by when it was published; the rest is known by number only.';
COMMENT ON COLUMN tieout.run.is_current IS 'Whether this is the statement that counts for its window.';
COMMENT ON COLUMN tieout.run.latency IS 'The statement''s latency, so that a year of it is read without the statements.';
COMMENT ON COLUMN tieout.run.sums IS 'The statement''s sums, so that a year of them is read without its hundred thousand partitions.';

CREATE UNIQUE INDEX run_current_key ON tieout.run (pipeline, consumer_group, window_start, window_end) WHERE is_current;
CREATE INDEX run_window_idx ON tieout.run (pipeline, window_start DESC, published_at DESC);
CREATE INDEX run_verdict_idx ON tieout.run (pipeline, window_start, window_end, published_at DESC)
    INCLUDE (run_id, verdict, final_verdict) WHERE is_current;

CREATE TABLE tieout.statement_partition (
    run_id uuid NOT NULL REFERENCES tieout.run ON DELETE CASCADE,
    topic text,
    partition integer,
    attempts bigint NOT NULL,
    acked_attempts bigint NOT NULL,
    failed_attempts bigint NOT NULL,
    unknown_attempts bigint NOT NULL,
    messages bigint NOT NULL,
    resends bigint NOT NULL,
    accepted bigint NOT NULL,
    unproven bigint NOT NULL,
    failed bigint NOT NULL,
    delivered bigint NOT NULL,
    filtered bigint NOT NULL,
    dead_lettered bigint NOT NULL,
    compacted bigint NOT NULL,
    lost bigint NOT NULL,
    in_flight bigint NOT NULL,
    unverifiable bigint NOT NULL,
    effects bigint NOT NULL,
    first_effects bigint NOT NULL,
    further_effects bigint NOT NULL,
    phantom_effects bigint NOT NULL,
    unverifiable_effects bigint NOT NULL,
    -- A remainder: a negative one is a defect that the checks must see, so it is stored as it is.
    unexplained bigint NOT NULL,
    offsets jsonb,
    CONSTRAINT statement_partition_key UNIQUE NULLS NOT DISTINCT (run_id, topic, partition),
    CONSTRAINT statement_partition_topic_check CHECK (octet_length(topic) <= 2000),
    CONSTRAINT statement_partition_counts_check CHECK (
        least(
            attempts, acked_attempts, failed_attempts, unknown_attempts, messages, resends, accepted, unproven, failed,
            delivered, filtered, dead_lettered, compacted, lost, in_flight, unverifiable,
            effects, first_effects, further_effects, phantom_effects, unverifiable_effects
        ) >= 0
    )
);
COMMENT ON TABLE tieout.statement_partition IS 'The sums of one run for one topic partition; nulls where it is not known.';

CREATE TABLE tieout.statement_count (
    run_id uuid NOT NULL REFERENCES tieout.run ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('class', 'flag')),
    name text NOT NULL CHECK (octet_length(name) <= 2000),
    count bigint NOT NULL CHECK (count >= 0),
    PRIMARY KEY (run_id, kind, name)
);
COMMENT ON TABLE tieout.statement_count IS 'How often each class and each flag occurs in one run.';

CREATE TABLE tieout.incident (
    run_id uuid NOT NULL REFERENCES tieout.run ON DELETE CASCADE,
    incident_id text NOT NULL CHECK (octet_length(incident_id) <= 2000),
    class text NOT NULL,
    locus text,
    cause text,
    topic text,
    partition integer,
    first_position jsonb,
    last_position jsonb,
    breaks bigint NOT NULL CHECK (breaks >= 0),
    severity text CHECK (severity IN ('info', 'warning', 'critical')),
    message_ids uuid[],
    earlier_ids uuid[],
    PRIMARY KEY (run_id, incident_id)
);
COMMENT ON TABLE tieout.incident IS 'Breaks of one cause, partition and contiguous stretch.';
COMMENT ON COLUMN tieout.incident.breaks IS 'How many breaks it has; the table break holds the first 20.';
COMMENT ON COLUMN tieout.incident.message_ids IS
    'MD5 digests of what the output shows of its messages, of lost ones their ids; null where it is not known of each.';
COMMENT ON COLUMN tieout.incident.earlier_ids IS
    'What the output of the hop before must show of them; null where that is the same, empty where nothing proves it.';

CREATE INDEX incident_gravest_idx ON tieout.incident (
    run_id, (CASE severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END), breaks DESC, incident_id
);

CREATE TABLE tieout.break (
    run_id uuid NOT NULL REFERENCES tieout.run ON DELETE CASCADE,
    break_id text NOT NULL CHECK (octet_length(break_id) <= 2000),
    -- Not a foreign key: a statement may list fewer incidents than its breaks name.
    incident_id text CHECK (octet_length(incident_id) <= 2000),
    class text NOT NULL,
    flags jsonb NOT NULL CHECK (jsonb_typeof(flags) = 'array'),
    message_id text,
    producer_id text,
    topic text,
    partition integer,
    msg_offset bigint,
    positions jsonb,
    locus text,
    cause text,
    admissible jsonb,
    rule text,
    severity text NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
    evidence jsonb NOT NULL CHECK (jsonb_typeof(evidence) = 'object'),
    last_attempt_at timestamptz,
    settled text GENERATED ALWAYS AS (
        CASE
            WHEN NOT flags <@ '["LATE", "inherited"]'::jsonb THEN NULL
            WHEN class = 'LATE' THEN 'late'
            WHEN severity <> 'info' OR class IN ('IN_FLIGHT', 'UNVERIFIABLE') THEN NULL
            WHEN flags @> '["LATE"]'::jsonb THEN 'late'
            ELSE 'explained'
        END
    ) STORED,
    PRIMARY KEY (run_id, break_id)
);
COMMENT ON TABLE tieout.break IS 'One message, position, commit or transaction that is not as it should be.';
COMMENT ON COLUMN tieout.break.last_attempt_at IS 'The latest attempt in its evidence; one after the break was told is a replay.';
COMMENT ON COLUMN tieout.break.settled IS 'As what the break needs nobody any more: it came late, or the guarantee does not mind it; null while it does.';

CREATE INDEX break_incident_idx ON tieout.break (run_id, incident_id);
CREATE INDEX break_position_idx
    ON tieout.break (run_id, coalesce(topic, ''), coalesce(partition, -1), coalesce(msg_offset, -1), break_id);
CREATE INDEX break_message_idx ON tieout.break (run_id, message_id);
CREATE INDEX break_class_idx ON tieout.break (run_id, class, break_id);

CREATE FUNCTION tieout.break_handles(message_id text, positions jsonb, evidence jsonb) RETURNS uuid[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY(
    SELECT DISTINCT md5(handle)::uuid
    FROM (
        SELECT jsonb_path_query(evidence, '$.*[*]')
        UNION ALL SELECT jsonb_path_query(positions, '$[*]')
        UNION ALL SELECT jsonb_build_object('message_id', message_id)
    ) AS shown (told)
    CROSS JOIN LATERAL (VALUES
        ('message_id ' || (told ->> 'message_id')),
        ('key ' || (told ->> 'key_hash')),
        ('position ' || (told ->> 'topic') || '/' || (told ->> 'partition') || '/' || (told ->> 'offset'))
    ) AS handles (handle)
    WHERE handle IS NOT NULL
);
COMMENT ON FUNCTION tieout.break_handles IS
    'What a break can be asked for by, as digests: ids are of any length, an index entry is not.';

CREATE INDEX break_handles_idx ON tieout.break USING gin (tieout.break_handles(message_id, positions, evidence));

CREATE TABLE tieout.check_result (
    run_id uuid NOT NULL REFERENCES tieout.run ON DELETE CASCADE,
    place integer NOT NULL CHECK (place >= 0),
    rule text NOT NULL,
    severity text NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
    status text NOT NULL CHECK (status IN ('pass', 'fail', 'error')),
    observed text NOT NULL,
    limit_text text NOT NULL,
    suite text NOT NULL,
    suite_digest text NOT NULL,
    gx_version text NOT NULL,
    checked_at timestamptz NOT NULL,
    PRIMARY KEY (run_id, place)
);
COMMENT ON TABLE tieout.check_result IS 'What each independent check of the stored rows found.';

CREATE TABLE tieout.alert (
    alert_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dedup_key text NOT NULL UNIQUE CHECK (octet_length(dedup_key) <= 2000),
    pipeline text NOT NULL CHECK (octet_length(pipeline) <= 500),
    window_start timestamptz,
    window_end timestamptz,
    -- Not a foreign key: an alert may tell of a run that was never stored, and must outlive one that was.
    run_id uuid,
    kind text NOT NULL,
    severity text NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
    route_to text NOT NULL CHECK (route_to <> ''),
    connection text NOT NULL CHECK (connection <> ''),
    thread text CHECK (octet_length(thread) <= 2000),
    is_closing boolean NOT NULL DEFAULT false,
    payload jsonb NOT NULL CHECK (jsonb_typeof(payload) = 'object'),
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'sending', 'sent', 'dead', 'superseded')),
    attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    leased_until timestamptz,
    sent_at timestamptz,
    last_error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT alert_window_check CHECK ((window_start IS NULL) = (window_end IS NULL) AND window_end > window_start),
    CONSTRAINT alert_lease_check CHECK ((status = 'sending') = (leased_until IS NOT NULL)),
    CONSTRAINT alert_sent_check CHECK ((status = 'sent') = (sent_at IS NOT NULL))
);
COMMENT ON TABLE tieout.alert IS 'The outbox: alerts are written with the result they tell of and sent afterwards.';
COMMENT ON COLUMN tieout.alert.dedup_key IS 'Two alerts with one key are one alert; receivers get it as the idempotency key.';
COMMENT ON COLUMN tieout.alert.thread IS 'Alerts of one thread, route and connection tell of one thing: a later one takes the place of one that waits.';
COMMENT ON COLUMN tieout.alert.is_closing IS 'Whether it tells the end of its thread; told only where its beginning was.';
COMMENT ON COLUMN tieout.alert.leased_until IS 'Until when the worker that took it may send it; afterwards another may.';

CREATE INDEX alert_due_idx ON tieout.alert (coalesce(leased_until, next_attempt_at), alert_id)
    WHERE status IN ('pending', 'sending');
CREATE INDEX alert_pipeline_idx ON tieout.alert (pipeline, created_at DESC);
CREATE INDEX alert_thread_idx ON tieout.alert (md5(thread), alert_id DESC) WHERE thread IS NOT NULL;

CREATE TABLE tieout.life (
    pipeline text NOT NULL,
    consumer_group text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('break', 'incident')),
    id text NOT NULL,
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'resolved', 'reopened')),
    resolution text CHECK (resolution IN ('late', 'replayed', 'backfilled', 'explained', 'continued', 'accepted')),
    outcome text CHECK (outcome IN ('late', 'replayed', 'backfilled', 'explained', 'continued')),
    is_absent boolean NOT NULL DEFAULT false,
    reopenings integer NOT NULL DEFAULT 0 CHECK (reopenings >= 0),
    class text NOT NULL,
    severity text NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
    locus text,
    cause text,
    topic text,
    partition integer,
    incident_id text,
    message_id text,
    msg_offset bigint,
    first_position jsonb,
    last_position jsonb,
    breaks bigint NOT NULL DEFAULT 1 CHECK (breaks >= 0),
    origin_id text,
    first_run_id uuid NOT NULL,
    first_seen_at timestamptz NOT NULL,
    first_window_start timestamptz NOT NULL,
    first_window_end timestamptz NOT NULL,
    -- Not foreign keys: a life is longer than the runs that a retention keeps.
    run_id uuid NOT NULL,
    seen_at timestamptz NOT NULL,
    window_start timestamptz NOT NULL,
    window_end timestamptz NOT NULL,
    resolved_at timestamptz,
    accepted_until timestamptz,
    accepted_class text,
    followed_since timestamptz NOT NULL DEFAULT clock_timestamp(),
    is_news boolean NOT NULL DEFAULT false,
    PRIMARY KEY (id, kind, pipeline, consumer_group),
    -- A B-tree entry holds at most 2,704 bytes.
    CONSTRAINT life_key_check CHECK (octet_length(pipeline) + octet_length(consumer_group) + octet_length(id) <= 2600),
    CONSTRAINT life_resolved_check CHECK (
        (state = 'resolved') = (resolution IS NOT NULL) AND (state = 'resolved') = (resolved_at IS NOT NULL)
    ),
    CONSTRAINT life_accepted_check CHECK ((accepted_until IS NULL) = (accepted_class IS NULL)),
    CONSTRAINT life_origin_check CHECK ((kind = 'incident') = (origin_id IS NOT NULL))
);
COMMENT ON TABLE tieout.life IS 'What became of each followed break and each incident, whatever run told it.';
COMMENT ON COLUMN tieout.life.outcome IS 'How the evidence settled it; null while it has not.';
COMMENT ON COLUMN tieout.life.is_absent IS 'Whether later statements about its whole window do not have it any more.';
COMMENT ON COLUMN tieout.life.seen_at IS 'When the latest statement that has it was generated; run_id and window are that statement''s.';
COMMENT ON COLUMN tieout.life.origin_id IS 'The incident that this one goes on from, itself where it is new; alerts about both are one.';
COMMENT ON COLUMN tieout.life.followed_since IS 'Statements published later look for it among all of their breaks.';
COMMENT ON COLUMN tieout.life.is_news IS 'Whether something about the incident changed that no alert tells yet.';

CREATE INDEX life_window_idx ON tieout.life (pipeline, consumer_group, window_start, window_end);
CREATE INDEX life_open_idx ON tieout.life (pipeline, kind, window_start, id) WHERE state <> 'resolved';
CREATE INDEX life_accepted_idx ON tieout.life (accepted_until) WHERE resolution = 'accepted';
CREATE INDEX life_news_idx ON tieout.life (pipeline, consumer_group) WHERE is_news;

CREATE TABLE tieout.life_event (
    event_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pipeline text NOT NULL,
    consumer_group text NOT NULL,
    kind text NOT NULL,
    id text NOT NULL,
    at timestamptz NOT NULL,
    run_id uuid,
    state text NOT NULL,
    resolution text,
    class text NOT NULL,
    severity text NOT NULL,
    window_start timestamptz NOT NULL,
    window_end timestamptz NOT NULL
);
COMMENT ON TABLE tieout.life_event IS 'Every change of state or class in a life, oldest first.';
COMMENT ON COLUMN tieout.life_event.at IS 'When the statement that changed it was generated; without a statement, when the act was made.';

CREATE INDEX life_event_idx ON tieout.life_event (md5(id), event_id DESC);

CREATE TABLE tieout.act (
    act_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pipeline text NOT NULL CHECK (pipeline <> '' AND octet_length(pipeline) <= 500),
    consumer_group text,
    act text NOT NULL CHECK (act IN ('accept', 'reopen', 'annotate', 'silence')),
    kind text CHECK (kind IN ('break', 'incident')),
    id text,
    who text NOT NULL CHECK (who <> ''),
    reason text NOT NULL CHECK (reason <> ''),
    expires_at timestamptz,
    made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT act_subject_check CHECK ((kind IS NULL) = (id IS NULL) AND (kind IS NOT NULL OR act = 'silence')),
    CONSTRAINT act_accept_check CHECK (act <> 'accept' OR expires_at IS NOT NULL)
);
COMMENT ON TABLE tieout.act IS 'What people did: rows are added and never changed.';
COMMENT ON COLUMN tieout.act.expires_at IS 'Until when it holds; a silence without one ends the silence before it.';

CREATE INDEX act_subject_idx ON tieout.act (md5(id), act_id);
CREATE INDEX act_silence_idx ON tieout.act (pipeline, act_id DESC) WHERE act = 'silence';

CREATE TABLE tieout.replay (
    plan_id text PRIMARY KEY CHECK (octet_length(plan_id) <= 200),
    -- Not a foreign key: what was replayed is remembered longer than the run that asked for it.
    run_id uuid NOT NULL,
    pipeline text NOT NULL CHECK (octet_length(pipeline) <= 500),
    consumer_group text NOT NULL CHECK (octet_length(consumer_group) <= 1000),
    incident_id text,
    target text NOT NULL,
    digest text NOT NULL,
    approved_by text,
    dag_run_id text,
    executed_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE tieout.replay IS 'Approved plans that were carried out.';

CREATE TABLE tieout.replay_item (
    idempotence_key text PRIMARY KEY CHECK (octet_length(idempotence_key) <= 200),
    plan_id text NOT NULL REFERENCES tieout.replay ON DELETE CASCADE,
    break_id text NOT NULL CHECK (octet_length(break_id) <= 2000),
    kind text NOT NULL CHECK (kind IN ('produce', 'remove')),
    message_id text
);
COMMENT ON TABLE tieout.replay_item IS 'The ledger of replays: a break whose key is here is not repaired a second time.';

CREATE INDEX replay_item_break_idx ON tieout.replay_item (break_id);
CREATE INDEX replay_item_plan_idx ON tieout.replay_item (plan_id);
