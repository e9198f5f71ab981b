-- JSON as Spark's to_json writes a struct: null fields are left out, times are UTC. A field is '"name":' || value.

CREATE MACRO json_field(name, value) AS '"' || name || '":' || to_json(value);
CREATE MACRO json_millis(name, t) AS '"' || name || '":"' || strftime(t, '%Y-%m-%dT%H:%M:%S.%gZ') || '"';
CREATE MACRO json_micros(name, t) AS '"' || name || '":"' || strftime(t, '%Y-%m-%dT%H:%M:%S.%fZ') || '"';
CREATE MACRO json_position(a_topic, a_partition, an_offset) AS
    '{' || concat_ws(',', json_field('topic', a_topic), json_field('partition', a_partition),
        json_field('offset', an_offset)) || '}';
CREATE MACRO json_positions(places) AS '"positions":[' || array_to_string(
    list_transform(places, lambda p: json_position(p.topic, p."partition", p."offset")), ',') || ']';
