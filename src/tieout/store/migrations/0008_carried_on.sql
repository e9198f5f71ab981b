-- A chain joins what was doubled, corrupted or invented as it joins what was lost: the digests are of more than ids.

COMMENT ON COLUMN tieout.incident.message_ids IS
    'MD5 digests of what the output shows of its messages, of lost ones their ids; null where it is not known of each.';
COMMENT ON COLUMN tieout.incident.earlier_ids IS
    'What the output of the hop before must show of them; null where that is the same, empty where nothing proves it.';
