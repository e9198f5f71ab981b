import org.apache.kafka.common.config.ConfigDef;

/** A sink of rows in PostgreSQL, in the words of the JDBC sinks: it inserts, or upserts by the record's position. */
public final class TableSink extends SingleTaskSink {
    private static final ConfigDef SETTINGS = Life.settings()
            .define("connection.url", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "JDBC URL of the database")
            .define("table.name", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "where the rows are put")
            .define("insert.mode", ConfigDef.Type.STRING, "insert", ConfigDef.ValidString.in("insert", "upsert"),
                    ConfigDef.Importance.HIGH, "what is done with a record that has been written before");

    public TableSink() {
        super(SETTINGS, TableTask.class);
    }
}
