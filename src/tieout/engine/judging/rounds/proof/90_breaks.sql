-- All breaks with the canonical rows that prove them, by ledger; breaks of a commit have the commits. It is a view, to
-- be read in slices of `number`, because its result is larger than all tables before it.
-- Needs: named_breaks, numbered_non_message_breaks, proofs. Source: contract.md (breaks.jsonl).
CREATE VIEW proven_breaks AS
SELECT
    b.number, b.break_id, b.class, b.flags, b.message_id, b.producer_id, b.topic, b."partition", b."offset",
    b.positions, b.locus, b.cause, b.admissible, lower(b.class) AS rule, b.incident_id,
    {
        'produced': p.proofs, 'log': l.proofs, 'read': r.proofs, 'delivered': d.proofs, 'filtered': f.proofs,
        'dead_letters': x.proofs, 'staged': s.proofs, 'committed': n.commit_rows, 'mirrored': n.mirrored_rows
    } AS evidence,
    b.kind, b.is_covered, b.message_key
FROM named_breaks AS b
LEFT JOIN numbered_non_message_breaks AS n ON n.number = b.number
LEFT JOIN listed_proofs('produced') AS p ON p.number = b.number
LEFT JOIN listed_proofs('log') AS l ON l.number = b.number
LEFT JOIN listed_proofs('read') AS r ON r.number = b.number
LEFT JOIN listed_proofs('delivered') AS d ON d.number = b.number
LEFT JOIN listed_proofs('filtered') AS f ON f.number = b.number
LEFT JOIN listed_proofs('dead_letters') AS x ON x.number = b.number
LEFT JOIN listed_proofs('staged') AS s ON s.number = b.number;
