"""What Kafka keeps and prints, decoded without Spark: the executors of the Kafka readers run this, and so do plain tests."""
