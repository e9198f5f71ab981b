import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Properties;

/** The tables of an application: its output with a key and without one. */
final class Tables implements AutoCloseable {
    private static final String COLUMNS =
            "message_id text, topic text, partition int, \"offset\" bigint, key_hash text, payload_hash text,"
                    + " consumer_id text, processed_at timestamptz default clock_timestamp()";
    private static final String INSERT =
            "insert into %s (message_id, topic, partition, \"offset\", key_hash, payload_hash, consumer_id)"
                    + " values (?, ?, ?, ?, ?, ?, ?) on conflict do nothing";

    final Connection connection;
    private final String life;

    /** Makes the tables where they are not there; rows are those of that life of the application. */
    Tables(Properties settings, String life) throws SQLException {
        this.life = life;
        connection = DriverManager.getConnection(settings.getProperty("database"));
        try (Statement statement = connection.createStatement()) {
            statement.execute("create schema if not exists " + settings.getProperty("schema"));
            connection.setSchema(settings.getProperty("schema"));
            statement.execute("create table if not exists plain (" + COLUMNS + ")");
            statement.execute(
                    "create table if not exists keyed (" + COLUMNS + ", primary key (topic, partition, \"offset\"))");
        }
    }

    /** Adds a row for each message. */
    void insert(String table, List<Message> messages) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement(INSERT.formatted(table))) {
            for (Message message : messages) {
                insert.setString(1, message.id());
                insert.setString(2, message.topic());
                insert.setInt(3, message.partition());
                insert.setLong(4, message.offset());
                insert.setString(5, message.keyHash());
                insert.setString(6, message.payloadHash());
                insert.setString(7, life);
                insert.addBatch();
            }
            insert.executeBatch();
        }
    }

    @Override
    public void close() throws SQLException {
        connection.close();
    }
}
