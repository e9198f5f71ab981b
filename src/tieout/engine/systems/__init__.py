"""What other systems than Kafka keep of their positions and outputs, parsed: pure, without Spark and without files."""
