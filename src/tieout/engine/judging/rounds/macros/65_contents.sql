-- What is known of a message's contents, and whether two of its rows differ in them. Source: taxonomy.md 2.

-- What is known of contents: a null is a value, unless the contract or the row says that it is not known. One bit per
-- content column: payload 1, key 2, header 4, timestamp 8.
CREATE MACRO shows_content(ledger, name) AS
    has_column(ledger, name) AND NOT list_contains(getvariable('unknown_contents'), ledger || '.' || name);
CREATE MACRO is_lacking_content(name, value, content) AS value IS NULL
    AND coalesce(starts_with(content, 'lacks:') AND list_contains(string_split(content, ' '), name), false);
CREATE MACRO null_bit(ledger, name, value, content, outcome, mark) AS CASE
    WHEN shows_content(ledger, name) AND value IS NULL AND content IS DISTINCT FROM 'unknown'
        AND NOT is_lacking_content(name, value, content)
        AND NOT (ledger = 'produced'
            AND (name = 'record_timestamp' OR coalesce(lower(outcome) IN ('failed', 'unknown'), false)))
    THEN mark ELSE 0 END;
CREATE MACRO null_contents(ledger, payload_hash, key_hash, header_hash, record_timestamp, content, outcome) AS CAST(
    null_bit(ledger, 'payload_hash', payload_hash, content, outcome, 1)
    + null_bit(ledger, 'key_hash', key_hash, content, outcome, 2)
    + null_bit(ledger, 'header_hash', header_hash, content, outcome, 4)
    + null_bit(ledger, 'record_timestamp', record_timestamp, content, outcome, 8) AS INTEGER);
CREATE MACRO lacking_bit(ledger, name, value, content, mark) AS
    CASE WHEN shows_content(ledger, name) AND is_lacking_content(name, value, content) THEN mark ELSE 0 END;
CREATE MACRO lacking_contents(ledger, payload_hash, key_hash, header_hash, record_timestamp, content) AS CAST(
    lacking_bit(ledger, 'payload_hash', payload_hash, content, 1)
    + lacking_bit(ledger, 'key_hash', key_hash, content, 2)
    + lacking_bit(ledger, 'header_hash', header_hash, content, 4)
    + lacking_bit(ledger, 'record_timestamp', record_timestamp, content, 8) AS INTEGER);

-- A side is a struct of has_value, is_null (known to be none) and is_lacking (its file has no such column);
-- a pair one of is_other (later has a value that earlier never had), is_part (nulls of later are parts of a fan-out)
-- and is_earlier_empty, is_later_empty (that side's null may be the empty text, which the other side has).
CREATE MACRO shows_empty(value, ledger, name) AS coalesce(value = getvariable('empty_contents')[ledger || '.' || name], false);
CREATE MACRO is_content_known(name, side) AS side.has_value OR (name <> 'header_hash' AND side.is_null);
CREATE MACRO is_content_nulled(later, earlier, pair) AS
    later.is_null AND NOT earlier.is_null AND earlier.has_value AND NOT pair.is_part;
CREATE MACRO content_differs(name, later, earlier, pair) AS
    is_content_known(name, earlier) AND NOT earlier.is_lacking AND NOT pair.is_earlier_empty
    AND (pair.is_other
        OR (name <> 'header_hash' AND is_content_nulled(later, earlier, pair) AND NOT pair.is_later_empty));
CREATE MACRO content_may_differ(name, later, earlier, pair) AS
    (later.is_lacking AND (earlier.has_value OR earlier.is_null))
    OR (earlier.is_lacking AND (pair.is_other OR (later.is_null AND NOT earlier.is_null)))
    OR (is_content_nulled(later, earlier, pair) AND (pair.is_later_empty OR name = 'header_hash'))
    OR (pair.is_earlier_empty AND pair.is_other)
    OR (name = 'header_hash' AND earlier.is_null AND NOT earlier.has_value AND later.has_value);

-- Whether contents are compared: two ledgers show them; the key's hash also says what is superseded.
CREATE MACRO is_compared(name) AS name = 'key_hash' OR
    has_column('produced', name)::INT + has_column('log', name)::INT + has_column('delivered', name)::INT
    + has_column('read', name)::INT > 1;
CREATE MACRO contents_of(payload_hash, key_hash, header_hash, record_timestamp) AS [
    {'name': 'payload_hash', 'bit': 1, 'value': CASE WHEN is_compared('payload_hash') THEN payload_hash END},
    {'name': 'key_hash', 'bit': 2, 'value': key_hash},
    {'name': 'header_hash', 'bit': 4, 'value': CASE WHEN is_compared('header_hash') THEN header_hash END},
    {'name': 'record_timestamp', 'bit': 8,
        'value': CASE WHEN is_compared('record_timestamp') THEN record_timestamp::VARCHAR END}];
