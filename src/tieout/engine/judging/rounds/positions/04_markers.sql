-- Positions of control records: a reader is handed nothing from them, whatever a row says of where it came from.
-- Needs: log_rows. Source: Apache Kafka's documentation, Implementation, "Control Batches".
CREATE TABLE marker_positions AS
SELECT topic, "partition", "offset" FROM log_rows WHERE is_control;
