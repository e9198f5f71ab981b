"""What Kafka keeps and prints, decoded without Spark: run by the executors of its readers, and by plain tests."""
