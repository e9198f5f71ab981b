-- An as-of join of few rows would go through all rows of the other side for each: the optimizer's count may be wrong.
SET asof_loop_join_threshold = 0;
