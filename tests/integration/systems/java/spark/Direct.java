import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.spark.SparkConf;
import org.apache.spark.streaming.Durations;
import org.apache.spark.streaming.api.java.JavaInputDStream;
import org.apache.spark.streaming.api.java.JavaStreamingContext;
import org.apache.spark.streaming.kafka010.ConsumerStrategies;
import org.apache.spark.streaming.kafka010.HasOffsetRanges;
import org.apache.spark.streaming.kafka010.KafkaUtils;
import org.apache.spark.streaming.kafka010.LocationStrategies;
import org.apache.spark.streaming.kafka010.OffsetRange;

/** A direct stream of one partition that keeps its ranges in a table: before the output, after it, or with it. */
public final class Direct {
    private final Tables tables;
    private final Ranges ranges;
    private final String order;
    private final int last;
    private int batches;
    private volatile long position;

    private Direct(Tables tables, Properties settings) throws SQLException {
        this.tables = tables;
        ranges = new Ranges(tables);
        order = settings.getProperty("order");
        last = Integer.parseInt(settings.getProperty("halt.in.batch", "-1"));
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = Settings.of(arguments);
        SparkConf configuration =
                new SparkConf()
                        .setMaster("local[1]")
                        .setAppName("direct")
                        .set("spark.ui.enabled", "false")
                        .set("spark.streaming.kafka.maxRatePerPartition", settings.getProperty("per.batch"));
        try (Tables tables = new Tables(settings, settings.getProperty("life"));
                JavaStreamingContext context = new JavaStreamingContext(configuration, Durations.seconds(1))) {
            // The preview's warnings name a class that this Spark does not have.
            context.sparkContext().setLogLevel("ERROR");
            new Direct(tables, settings).run(context, settings);
        }
    }

    private void run(JavaStreamingContext context, Properties settings) throws Exception {
        TopicPartition place = new TopicPartition(settings.getProperty("topic"), 0);
        position = ranges.position(place.topic(), place.partition());
        Map<String, Object> consumer =
                Map.of(
                        "bootstrap.servers", settings.getProperty("brokers"),
                        "group.id", "direct",
                        "enable.auto.commit", false,
                        "auto.offset.reset", "none",
                        "key.deserializer", ByteArrayDeserializer.class,
                        "value.deserializer", ByteArrayDeserializer.class);
        JavaInputDStream<ConsumerRecord<byte[], byte[]>> stream =
                KafkaUtils.createDirectStream(
                        context,
                        LocationStrategies.PreferConsistent(),
                        ConsumerStrategies.<byte[], byte[]>Assign(List.of(place), consumer, Map.of(place, position)));
        stream.foreachRDD(
                rdd -> {
                    OffsetRange range = ((HasOffsetRanges) rdd.rdd()).offsetRanges()[0];
                    if (range.count() > 0) {
                        process(range, rdd.map(Direct::message).collect());
                    }
                });
        context.start();
        long end = Long.parseLong(settings.getProperty("until"));
        while (position < end && !context.awaitTerminationOrTimeout(100)) {
            Thread.onSpinWait();
        }
    }

    private static Message message(ConsumerRecord<byte[], byte[]> record) {
        return Message.of(record.topic(), record.partition(), record.offset(), record.key(), record.value());
    }

    private void process(OffsetRange range, List<Message> messages) throws SQLException {
        switch (order) {
            case "results-first" -> {
                tables.insert("plain", messages);
                haltIfLast();
                advance(range);
            }
            case "offsets-first" -> {
                advance(range);
                haltIfLast();
                tables.insert("plain", messages);
            }
            case "transaction" -> {
                tables.connection.setAutoCommit(false);
                tables.insert("plain", messages);
                haltIfLast();
                advance(range);
                tables.connection.commit();
            }
            default -> throw new IllegalArgumentException("order: " + order);
        }
        position = range.untilOffset();
    }

    private void advance(OffsetRange range) throws SQLException {
        ranges.advance(range.topic(), range.partition(), range.fromOffset(), range.untilOffset());
    }

    private void haltIfLast() {
        if (batches++ == last) {
            Runtime.getRuntime().halt(137);
        }
    }
}
