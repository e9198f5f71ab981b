-- What the files by content (10 to 40) find: the keys of effects and of what was set aside, by line of their ledger,
-- and the attempts that may have been met early. Empty where messages are known by something else.
CREATE TABLE content_keys (line BIGINT, message_key VARCHAR, has_identity BOOLEAN);
CREATE TABLE content_set_aside_keys (
    stage INTEGER, line BIGINT, payload_hash VARCHAR, message_key VARCHAR, is_unserved BOOLEAN);
CREATE TABLE met_early (message_key VARCHAR);
