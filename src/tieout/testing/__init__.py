"""Builders, fakes and services for tests, ours and users'; no product code depends on them."""
