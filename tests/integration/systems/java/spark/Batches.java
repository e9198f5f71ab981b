import java.util.List;
import java.util.Properties;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.Trigger;

/** A query of Structured Streaming whose foreachBatch writes into a table without a key and into one that has one. */
public final class Batches {
    public static void main(String[] arguments) throws Exception {
        Properties settings = Settings.of(arguments);
        long last = Long.parseLong(settings.getProperty("halt.after.batch", "-1"));
        SparkSession spark = Settings.session();
        try (Tables tables = new Tables(settings, settings.getProperty("life"))) {
            VoidFunction2<Dataset<Row>, Long> write =
                    (rows, batch) -> {
                        List<Message> messages =
                                rows.select("topic", "partition", "offset", "key", "value").collectAsList().stream()
                                        .map(Batches::message)
                                        .toList();
                        tables.insert("plain", messages);
                        tables.insert("keyed", messages);
                        if (batch == last) {
                            Runtime.getRuntime().halt(137);
                        }
                    };
            Settings.stream(spark, settings)
                    .writeStream()
                    .foreachBatch(write)
                    .option("checkpointLocation", settings.getProperty("checkpoint"))
                    .trigger(Trigger.AvailableNow())
                    .start()
                    .awaitTermination();
        }
        spark.stop();
    }

    private static Message message(Row row) {
        return Message.of(row.getString(0), row.getInt(1), row.getLong(2), row.getAs(3), row.getAs(4));
    }
}
