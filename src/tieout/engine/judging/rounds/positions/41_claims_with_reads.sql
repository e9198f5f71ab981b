-- Owners of positions when reads count as claims: a read is a stronger claim than a send. Few positions change.
-- Needs: keyed_reads, unnamed_outputs, position_claims, owners, keyed_sends. Source: interpretations.md 17, 38 and 83.
CREATE TABLE read_claims AS
SELECT r.topic, r."partition", r."offset", r.message_key, r.payload_hash, 1 AS rank, false AS is_doubtful, 0 AS ago,
    shown_name(r.message_id, r.payload_hash) AS name, shown_session(r.producer_session) AS session
FROM keyed_reads AS r SEMI JOIN keyed_sends AS s ON r.message_key = s.message_key
WHERE r."offset" IS NOT NULL AND NOT r.is_of_aborted AND r.has_identity AND NOT r.is_ambiguous;

CREATE TABLE reowned_positions AS
SELECT DISTINCT r.topic, r."partition", r."offset" FROM read_claims AS r LEFT JOIN owners AS o
    ON same_partition(r.topic, r."partition", o.topic, o."partition") AND r."offset" = o."offset"
WHERE o.message_key IS NULL OR r.message_key <> o.message_key OR o.message_key <> o.last_key OR o.is_nameless
    OR coalesce(r.name < o.name, r.name IS NOT NULL AND o.name IS NULL)
    OR coalesce(r.session < o.session, r.session IS NOT NULL AND o.session IS NULL);

CREATE VIEW claims_with_reads AS
SELECT c.* FROM (FROM position_claims UNION ALL BY NAME FROM read_claims) AS c SEMI JOIN reowned_positions AS p
    ON same_partition(c.topic, c."partition", p.topic, p."partition") AND c."offset" = p."offset";
CREATE TABLE reowned AS FROM owners_among('claims_with_reads');
CREATE VIEW output_owners AS
SELECT o.* FROM owners AS o ANTI JOIN reowned_positions AS p
    ON same_partition(o.topic, o."partition", p.topic, p."partition") AND o."offset" = p."offset"
UNION ALL SELECT * FROM reowned;
CREATE TABLE ambiguous_outputs AS
SELECT c.* FROM ambiguous_claims AS c ANTI JOIN reowned_positions AS p
    ON same_partition(c.topic, c."partition", p.topic, p."partition") AND c."offset" = p."offset"
UNION ALL FROM ambiguous_among('claims_with_reads', 'reowned');
CREATE TABLE choices_of_outputs AS FROM choices_among('unnamed_outputs', 'ambiguous_outputs');
