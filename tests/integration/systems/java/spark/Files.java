import java.util.Properties;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.streaming.Trigger;
import org.apache.spark.sql.types.DataTypes;

/** A query of Structured Streaming that writes files: one for each partition of a batch, then the batch's manifest. */
public final class Files {
    public static void main(String[] arguments) throws Exception {
        Properties settings = Settings.of(arguments);
        long pause = Long.parseLong(settings.getProperty("pause.ms"));
        SparkSession spark = Settings.session();
        UDF1<Long, Long> paused =
                value -> {
                    Thread.sleep(pause);
                    return value;
                };
        spark.udf().register("paused", paused, DataTypes.LongType);
        Settings.stream(spark, settings)
                .selectExpr(
                        "get_json_object(string(value), '$.order_id') as message_id",
                        "topic",
                        "partition",
                        "paused(offset) as offset",
                        "sha2(key, 256) as key_hash",
                        "sha2(value, 256) as payload_hash",
                        "current_timestamp() as processed_at",
                        "'" + settings.getProperty("life") + "' as consumer_id")
                .writeStream()
                .format("json")
                .option("checkpointLocation", settings.getProperty("checkpoint"))
                .option("path", settings.getProperty("output"))
                .trigger(Trigger.AvailableNow())
                .start()
                .awaitTermination();
        spark.stop();
    }
}
