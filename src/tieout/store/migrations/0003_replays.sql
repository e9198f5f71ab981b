-- Replays: what was produced again or handed out for removal, each break once.

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
