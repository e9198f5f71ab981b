-- Positions of control records: readers receive nothing from them, whatever position a row claims.
-- Needs: log_rows. Source: Apache Kafka's documentation, Implementation, "Control Batches".
CREATE TABLE marker_positions AS
SELECT topic, "partition", "offset" FROM log_rows WHERE is_control;
