import org.apache.kafka.common.config.ConfigDef;

/** A sink of files named by topic, partition, first and last offset, as Confluent's HDFS sink names them. */
public final class RangeFileSink extends SingleTaskSink {
    private static final ConfigDef SETTINGS = Life.settings()
            .define("folder", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "where the files are put")
            .define("flush.size", ConfigDef.Type.INT, ConfigDef.Importance.HIGH, "records of a file")
            .define("resume", ConfigDef.Type.STRING, "names", ConfigDef.ValidString.in("names", "group"),
                    ConfigDef.Importance.HIGH, "what a restart goes by: the files' names, or the group's offsets");

    public RangeFileSink() {
        super(SETTINGS, RangeFileTask.class);
    }
}
