-- Stands in for identity content as long as its files are not there.
CREATE TABLE IF NOT EXISTS content_sends AS FROM named_sends LIMIT 0;
CREATE TABLE IF NOT EXISTS content_records AS FROM named_records LIMIT 0;
