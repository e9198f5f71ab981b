import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Collection;
import java.util.Map;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Writes a row per record, each in a transaction of its own; the offsets stay with the framework. */
public final class TableTask extends SinkTask {
    private static final String COLUMNS = "topic, partition, \"offset\", key, value, consumer_id, processed_at";
    private Life life;
    private Connection database;
    private PreparedStatement row;

    @Override
    public void start(Map<String, String> settings) {
        life = new Life(settings, context);
        String table = settings.get("table.name");
        boolean upserts = settings.get("insert.mode").equals("upsert");
        String key = upserts ? ", primary key (topic, partition, \"offset\")" : "";
        String again = upserts
                ? " on conflict (topic, partition, \"offset\") do update set value = excluded.value, key = excluded.key,"
                        + " consumer_id = excluded.consumer_id, processed_at = excluded.processed_at"
                : "";
        try {
            database = DriverManager.getConnection(settings.get("connection.url"));
            try (Statement statement = database.createStatement()) {
                statement.execute("create table if not exists " + table + " (topic text, partition int, \"offset\" bigint,"
                        + " key text, value text, consumer_id text, processed_at timestamptz" + key + ")");
            }
            row = database.prepareStatement("insert into " + table + " (" + COLUMNS
                    + ") values (?, ?, ?, ?, ?, ?, clock_timestamp())" + again);
        } catch (SQLException error) {
            throw new ConnectException(error);
        }
    }

    @Override
    public void put(Collection<SinkRecord> records) {
        for (SinkRecord record : records) {
            life.pause();
            if (!life.refuses(record)) {
                write(record);
            }
        }
    }

    @Override
    public void stop() {
        try {
            if (database != null) {
                database.close();
            }
        } catch (SQLException error) {
            throw new ConnectException(error);
        }
    }

    @Override
    public String version() {
        return "1";
    }

    private void write(SinkRecord record) {
        try {
            row.setString(1, record.topic());
            row.setInt(2, record.kafkaPartition());
            row.setLong(3, record.kafkaOffset());
            row.setString(4, (String) record.key());
            row.setString(5, (String) record.value());
            row.setString(6, life.id());
            row.executeUpdate();
        } catch (SQLException error) {
            throw new ConnectException(error);
        }
    }
}
