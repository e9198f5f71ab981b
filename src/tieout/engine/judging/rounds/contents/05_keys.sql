-- Tables that files 10 to 40 fill where messages are identified by content: the keys of effects and of rows that were
-- set aside, by line of their ledger, and the attempts that may have an effect already. Empty with any other identity.
CREATE TABLE content_keys (line BIGINT, message_key VARCHAR, has_identity BOOLEAN);
CREATE TABLE content_set_aside_keys (
    stage INTEGER, line BIGINT, payload_hash VARCHAR, message_key VARCHAR, is_unserved BOOLEAN);
CREATE TABLE met_early (message_key VARCHAR);
