import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Properties;

/** The tables of an application: its output with a key and without one, and the ranges that it has processed. */
final class Tables implements AutoCloseable {
    private static final String COLUMNS =
            "message_id text, topic text, partition int, \"offset\" bigint, key_hash text, payload_hash text,"
                    + " consumer_id text, processed_at timestamptz default clock_timestamp()";
    private static final String RANGES =
            "topic text, partition int, from_offset bigint, until_offset bigint,"
                    + " committed_at timestamptz default clock_timestamp()";
    private static final String INSERT =
            "insert into %s (message_id, topic, partition, \"offset\", key_hash, payload_hash, consumer_id)"
                    + " values (?, ?, ?, ?, ?, ?, ?) on conflict do nothing";

    final Connection connection;
    private final String life;

    Tables(Properties settings) throws SQLException {
        connection = DriverManager.getConnection(settings.getProperty("database"));
        life = settings.getProperty("life");
        try (Statement statement = connection.createStatement()) {
            statement.execute("create schema if not exists " + settings.getProperty("schema"));
            connection.setSchema(settings.getProperty("schema"));
            statement.execute("create table if not exists plain (" + COLUMNS + ")");
            statement.execute(
                    "create table if not exists keyed (" + COLUMNS + ", primary key (topic, partition, \"offset\"))");
            statement.execute("create table if not exists ranges (" + RANGES + ")");
        }
    }

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

    /** Returns where the ranges of the partition end, 0 where there is none. */
    long position(String topic, int partition) throws SQLException {
        String sql = "select coalesce(max(until_offset), 0) from ranges where topic = ? and partition = ?";
        try (PreparedStatement query = connection.prepareStatement(sql)) {
            query.setString(1, topic);
            query.setInt(2, partition);
            var rows = query.executeQuery();
            rows.next();
            return rows.getLong(1);
        }
    }

    /** Adds a range where the one before it ends; fails where another application has been there first. */
    void advance(String topic, int partition, long from, long until) throws SQLException {
        String sql =
                "insert into ranges (topic, partition, from_offset, until_offset)"
                        + " select ?, ?, ?, ? from (select coalesce(max(until_offset), 0) as until_offset from ranges"
                        + " where topic = ? and partition = ?) as last where last.until_offset = ?";
        try (PreparedStatement insert = connection.prepareStatement(sql)) {
            insert.setString(1, topic);
            insert.setInt(2, partition);
            insert.setLong(3, from);
            insert.setLong(4, until);
            insert.setString(5, topic);
            insert.setInt(6, partition);
            insert.setLong(7, from);
            if (insert.executeUpdate() != 1) {
                throw new SQLException("another application is at " + position(topic, partition) + ", not at " + from);
            }
        }
    }

    @Override
    public void close() throws SQLException {
        connection.close();
    }
}
