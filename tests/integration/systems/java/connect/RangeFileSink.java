import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;

/** A sink of files named by topic, partition, first and last offset, as Confluent's HDFS sink names them. */
public final class RangeFileSink extends SinkConnector {
    private static final ConfigDef SETTINGS = Life.settings()
            .define("folder", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "where the files are put")
            .define("flush.size", ConfigDef.Type.INT, ConfigDef.Importance.HIGH, "records of a file")
            .define("resume", ConfigDef.Type.STRING, "names", ConfigDef.ValidString.in("names", "group"),
                    ConfigDef.Importance.HIGH, "what a restart goes by: the files' names, or the group's offsets");
    private Map<String, String> settings;

    @Override
    public void start(Map<String, String> given) {
        settings = Settings.of(SETTINGS, given);
    }

    @Override
    public Class<? extends Task> taskClass() {
        return RangeFileTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        return Collections.singletonList(settings);
    }

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        return SETTINGS;
    }

    @Override
    public String version() {
        return "1";
    }
}
