import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;

/** A sink of rows in PostgreSQL, in the words of the JDBC sinks: it inserts, or upserts by the record's position. */
public final class TableSink extends SinkConnector {
    private static final ConfigDef SETTINGS = Life.settings()
            .define("connection.url", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "JDBC URL of the database")
            .define("table.name", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "where the rows are put")
            .define("insert.mode", ConfigDef.Type.STRING, "insert", ConfigDef.ValidString.in("insert", "upsert"),
                    ConfigDef.Importance.HIGH, "what is done with a record that has been written before");
    private Map<String, String> settings;

    @Override
    public void start(Map<String, String> given) {
        settings = Settings.of(SETTINGS, given);
    }

    @Override
    public Class<? extends Task> taskClass() {
        return TableTask.class;
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
