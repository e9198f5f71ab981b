import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;

/** A sink with one task, which gets the settings of the connector. */
abstract class SingleTaskSink extends SinkConnector {
    private final ConfigDef known;
    private final Class<? extends Task> task;
    private Map<String, String> settings;

    SingleTaskSink(ConfigDef known, Class<? extends Task> task) {
        this.known = known;
        this.task = task;
    }

    @Override
    public void start(Map<String, String> given) {
        settings = Settings.of(known, given);
    }

    @Override
    public Class<? extends Task> taskClass() {
        return task;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        return Collections.singletonList(settings);
    }

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        return known;
    }

    @Override
    public String version() {
        return "1";
    }
}
