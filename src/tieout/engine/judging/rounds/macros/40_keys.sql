-- Positions, and keys of messages. A message is known by its position, by its content there where several were sent, by
-- an id that is used for nothing else, by an id of a session, or by an id and the content that tells its messages apart.

CREATE MACRO same_partition(a_topic, a_partition, b_topic, b_partition) AS
    a_topic IS NOT DISTINCT FROM b_topic AND a_partition IS NOT DISTINCT FROM b_partition;
CREATE MACRO same_position(a_topic, a_partition, an_offset, b_topic, b_partition, b_offset) AS
    same_partition(a_topic, a_partition, b_topic, b_partition) AND an_offset = b_offset;

-- Kafka's clients report -1 where they know no offset (acks=0).
CREATE MACRO placed_offset(an_offset) AS CASE WHEN an_offset >= 0 THEN an_offset END;

-- A position as a struct: of a message, and of a commit.
CREATE MACRO position_of(a_topic, a_partition, an_offset) AS
    {'topic': a_topic, 'partition': a_partition, 'offset': an_offset::BIGINT};

CREATE MACRO position_key(a_topic, a_partition, an_offset) AS 'p:' || json_position(a_topic, a_partition, an_offset);
CREATE MACRO position_content_key(a_topic, a_partition, an_offset, content) AS
    position_key(a_topic, a_partition, an_offset) || coalesce('#' || content, '');
CREATE MACRO id_key(id) AS 'm:' || id;
CREATE MACRO ambiguous_key(id) AS CASE WHEN is_by_id() THEN 'a:' || id END;
CREATE MACRO is_ambiguous_key(a_key) AS starts_with(a_key, 'a:');
CREATE MACRO session_key(producer, session, id) AS
    's:{' || concat_ws(',', json_field('producer_id', producer), json_field('producer_session', session),
        json_field('message_id', id)) || '}';
CREATE MACRO content_key(id, content) AS
    'c:{' || concat_ws(',', json_field('message_id', id), json_field('content', content)) || '}';

-- Of rows that only their payload ties to a send, those more than its attempts, and those before their send.
CREATE MACRO payload_key(payload_hash) AS 'h:' || payload_hash;
CREATE MACRO excess_key(payload_hash) AS 'e:' || payload_hash;
CREATE MACRO stray_key(a_key) AS 'b:' || a_key;
CREATE MACRO is_unsent(message_key, payload_hash) AS
    payload_hash IS NOT NULL AND (starts_with(message_key, 'u:') OR starts_with(message_key, 'h:'));
