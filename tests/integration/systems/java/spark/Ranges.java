import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;

/** The table of the ranges that an application has processed, beside its output and in the same transactions. */
final class Ranges {
    private static final String COLUMNS =
            "topic text, partition int, from_offset bigint, until_offset bigint,"
                    + " committed_at timestamptz default clock_timestamp()";

    private final Connection connection;

    Ranges(Tables tables) throws SQLException {
        connection = tables.connection;
        try (Statement statement = connection.createStatement()) {
            statement.execute("create table if not exists ranges (" + COLUMNS + ")");
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
}
