-- Limits as-of joins: with few rows on one side DuckDB would scan all rows of the other side for each, where the
-- optimizer's count is wrong.
SET asof_loop_join_threshold = 0;
