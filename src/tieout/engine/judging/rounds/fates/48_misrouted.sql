-- MISROUTED: a message that was sent to another partition than intended, or lies in another one. By content nobody can
-- tell which of several equal records is the message's.
-- Needs: messages, message_positions, message_intentions. Source: taxonomy.md 3.
CREATE TABLE elsewhere AS
WITH placed AS (
    SELECT DISTINCT message_key, "partition"
    FROM message_positions
    WHERE NOT is_by_content() AND has_column('produced', 'intended_partition') AND has_column('produced', 'partition')
        AND is_own AND "partition" IS NOT NULL
),
intended AS (FROM message_intentions WHERE intended_partition IS NOT NULL)
SELECT DISTINCT p.message_key
FROM (FROM placed AS p SEMI JOIN intended AS i ON i.message_key = p.message_key) AS p
ANTI JOIN intended AS i ON i.message_key = p.message_key AND i.intended_partition = p."partition";

CREATE VIEW with_misroutings AS
SELECT m.*,
    has_column('produced', 'intended_partition') AND has_column('produced', 'partition')
        AND ((m.is_misrouted AND coalesce(m.acceptance = 'accepted', false)) OR e.message_key IS NOT NULL)
        AS is_elsewhere
FROM with_duplicates AS m LEFT JOIN elsewhere AS e ON e.message_key = m.message_key;
