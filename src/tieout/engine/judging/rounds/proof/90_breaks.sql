-- All breaks with the canonical rows that prove them, by ledger; those of a commit have the commits themselves.
-- Needs: named_breaks, numbered_standing, proofs_<ledger>. Source: contract.md (breaks.jsonl).
CREATE TABLE breaks AS
SELECT
    b.break_id, b.class, b.flags, b.message_id, b.producer_id, b.topic, b."partition", b."offset", b.positions, b.locus,
    b.cause, b.admissible, lower(b.class) AS rule, b.incident_id,
    {
        'produced': p.proofs, 'log': l.proofs, 'read': r.proofs, 'delivered': d.proofs, 'filtered': f.proofs,
        'dead_letters': x.proofs, 'staged': s.proofs, 'committed': NULL, 'mirrored': NULL
    } AS evidence,
    b.kind, b.is_covered, b.message_key
FROM named_breaks AS b
LEFT JOIN proofs_produced AS p ON p.message_key = b.message_key
LEFT JOIN proofs_log AS l ON l.message_key = b.message_key
LEFT JOIN proofs_read AS r ON r.message_key = b.message_key
LEFT JOIN proofs_delivered AS d ON d.message_key = b.message_key
LEFT JOIN proofs_filtered AS f ON f.message_key = b.message_key
LEFT JOIN proofs_dead_letters AS x ON x.message_key = b.message_key
LEFT JOIN proofs_staged AS s ON s.message_key = b.message_key
WHERE b.message_key IS NOT NULL
UNION ALL
SELECT
    b.break_id, b.class, b.flags, b.message_id, b.producer_id, b.topic, b."partition", b."offset", b.positions, b.locus,
    b.cause, b.admissible, lower(b.class) AS rule, b.incident_id,
    {
        'produced': p.proofs, 'log': l.proofs, 'read': r.proofs, 'delivered': d.proofs, 'filtered': f.proofs,
        'dead_letters': x.proofs, 'staged': s.proofs, 'committed': n.commit_rows, 'mirrored': n.mirrored_rows
    } AS evidence,
    b.kind, b.is_covered, b.message_key
FROM named_breaks AS b
JOIN numbered_standing AS n ON n.number = b.number
LEFT JOIN proofs_at_positions(proof_produced) AS p ON p.number = b.number
LEFT JOIN proofs_at_positions(proof_log) AS l ON l.number = b.number
LEFT JOIN proofs_at_positions(proof_read) AS r ON r.number = b.number
LEFT JOIN proofs_at_positions(proof_delivered) AS d ON d.number = b.number
LEFT JOIN proofs_at_positions(proof_filtered) AS f ON f.number = b.number
LEFT JOIN proofs_at_positions(proof_dead_letters) AS x ON x.number = b.number
LEFT JOIN proofs_at_positions(proof_staged) AS s ON s.number = b.number;
