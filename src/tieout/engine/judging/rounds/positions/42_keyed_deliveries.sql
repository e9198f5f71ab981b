-- The judged group's output with its message's key.
-- Needs: unnamed_deliveries, output_owners, choices_of_outputs. Source: taxonomy.md 1 (Messages, Effects).
CREATE TABLE keyed_deliveries AS
SELECT * REPLACE (coalesce(message_key, 'r:' || fields_digest(concat_ws(',',
        json_field('consumer_group', consumer_group), json_field('consumer_id', consumer_id),
        json_field('content', content), json_field('delivery_sequence', delivery_sequence),
        json_field('effect_key', effect_key), json_field('effect_state', effect_state),
        json_field('generation', generation), json_field('header_hash', header_hash),
        json_field('key_hash', key_hash), json_field('leader_epoch', leader_epoch),
        json_field('message_id', message_id), json_field('offset', "offset"), json_field('outcome', outcome),
        json_field('partition', "partition"), json_field('payload_hash', payload_hash),
        json_micros('processed_at', processed_at), json_field('producer_session', producer_session),
        json_micros('record_timestamp', record_timestamp), json_field('topic', topic),
        json_field('topic_id', topic_id), json_field('transaction_id', transaction_id),
        json_field('transaction_state', transaction_state)))) AS message_key)
FROM keyed_rows('unnamed_deliveries', 'output_owners', 'choices_of_outputs');
