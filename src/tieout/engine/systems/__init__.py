"""Parsers for the positions and outputs of systems other than Kafka: pure, without Spark and without file access."""
