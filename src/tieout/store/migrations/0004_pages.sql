-- What the pages read most: the verdicts of a year without their statements, and breaks in the order of the log.

ALTER TABLE tieout.run ADD COLUMN latency jsonb GENERATED ALWAYS AS (statement -> 'latency') STORED;
COMMENT ON COLUMN tieout.run.latency IS 'The statement''s latency, so that a year of it is read without the statements.';

CREATE INDEX run_verdict_idx ON tieout.run (pipeline, window_start, window_end, published_at DESC)
    INCLUDE (run_id, verdict, final_verdict) WHERE is_current;

CREATE INDEX break_position_idx
    ON tieout.break (run_id, coalesce(topic, ''), coalesce(partition, -1), coalesce(msg_offset, -1), break_id);
CREATE INDEX break_message_idx ON tieout.break (run_id, message_id);
