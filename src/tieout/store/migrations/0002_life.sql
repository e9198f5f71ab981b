-- The life of breaks and incidents across runs, the acts of people upon them, and alerts that follow one another.

ALTER TABLE tieout.run ADD COLUMN breaks_read bigint NOT NULL DEFAULT 0 CHECK (breaks_read >= 0);
COMMENT ON COLUMN tieout.run.breaks_read IS 'How many of its breaks went by when it was published; the rest is known by number only.';

ALTER TABLE tieout.break ADD COLUMN last_attempt_at timestamptz;
COMMENT ON COLUMN tieout.break.last_attempt_at IS 'The latest attempt in its evidence; one after the break was told is a replay.';
ALTER TABLE tieout.break ADD COLUMN settled text GENERATED ALWAYS AS (
    CASE
        WHEN NOT flags <@ '["LATE", "inherited"]'::jsonb THEN NULL
        WHEN class = 'LATE' THEN 'late'
        WHEN severity <> 'info' OR class IN ('IN_FLIGHT', 'UNVERIFIABLE') THEN NULL
        WHEN flags @> '["LATE"]'::jsonb THEN 'late'
        ELSE 'explained'
    END
) STORED;
COMMENT ON COLUMN tieout.break.settled IS 'As what the break needs nobody any more: it came late, or the guarantee does not mind it; null while it does.';

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

ALTER TABLE tieout.alert ADD COLUMN thread text CHECK (octet_length(thread) <= 2000);
ALTER TABLE tieout.alert ADD COLUMN is_closing boolean NOT NULL DEFAULT false;
ALTER TABLE tieout.alert DROP CONSTRAINT alert_status_check;
ALTER TABLE tieout.alert ADD CONSTRAINT alert_status_check
    CHECK (status IN ('pending', 'sending', 'sent', 'dead', 'superseded'));
COMMENT ON COLUMN tieout.alert.thread IS 'Alerts of one thread, route and connection tell of one thing: a later one takes the place of one that waits.';
COMMENT ON COLUMN tieout.alert.is_closing IS 'Whether it tells the end of its thread; told only where its beginning was.';

CREATE INDEX alert_thread_idx ON tieout.alert (md5(thread), alert_id DESC) WHERE thread IS NOT NULL;
