import java.io.FileReader;
import java.io.IOException;
import java.util.Properties;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** What the applications have in common: their settings from a file, a small Spark, the topic as a stream. */
final class Settings {
    private Settings() {}

    static Properties of(String[] arguments) throws IOException {
        Properties settings = new Properties();
        try (FileReader file = new FileReader(arguments[0])) {
            settings.load(file);
        }
        return settings;
    }

    static SparkSession session() {
        SparkSession spark =
                SparkSession.builder()
                        .master("local[1]")
                        .config("spark.ui.enabled", "false")
                        .config("spark.sql.shuffle.partitions", "1")
                        .getOrCreate();
        spark.sparkContext().setLogLevel("WARN");
        return spark;
    }

    static Dataset<Row> stream(SparkSession spark, Properties settings) {
        return spark.readStream()
                .format("kafka")
                .option("kafka.bootstrap.servers", settings.getProperty("brokers"))
                .option("subscribe", settings.getProperty("topic"))
                .option("startingOffsets", "earliest")
                .option("maxOffsetsPerTrigger", settings.getProperty("per.batch"))
                .option("failOnDataLoss", settings.getProperty("fail.on.data.loss", "true"))
                .load();
    }
}
