import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;

/** The table `state`, a row for each key, and the view `entries`, a row for each message that is counted in it. */
final class StateTable {
    private static final String TABLE =
            "create table if not exists state (key text primary key, txid bigint, current text, previous text)";
    private static final String VIEW =
            "create or replace view entries as select split_part(e, '|', 1) as message_id,"
                    + " split_part(e, '|', 2) as topic, split_part(e, '|', 3)::int as partition,"
                    + " split_part(e, '|', 4)::bigint as \"offset\", nullif(split_part(e, '|', 5), '') as key_hash,"
                    + " split_part(e, '|', 6) as payload_hash, split_part(e, '|', 7) as consumer_id,"
                    + " split_part(e, '|', 8)::timestamptz as processed_at"
                    + " from state, unnest(string_to_array(current, ',')) as e";
    private static final String GET = "select txid, current, previous from state where key = ?";
    private static final String PUT =
            "insert into state values (?, ?, ?, ?) on conflict (key) do update"
                    + " set txid = excluded.txid, current = excluded.current, previous = excluded.previous";

    /** The value of a key: of which batch, and what it was before that. */
    record Row(Long txid, String current, String previous) {}

    private final Connection connection;

    StateTable(Properties settings) throws SQLException {
        connection = DriverManager.getConnection(settings.getProperty("database"));
        try (Statement statement = connection.createStatement()) {
            statement.execute("create schema if not exists " + settings.getProperty("schema"));
            connection.setSchema(settings.getProperty("schema"));
            statement.execute(TABLE);
            statement.execute(VIEW);
        }
    }

    Row row(String key) throws SQLException {
        try (PreparedStatement query = connection.prepareStatement(GET)) {
            query.setString(1, key);
            ResultSet rows = query.executeQuery();
            return rows.next() ? new Row((Long) rows.getObject(1), rows.getString(2), rows.getString(3)) : null;
        }
    }

    void put(String key, Row row) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement(PUT)) {
            insert.setString(1, key);
            insert.setObject(2, row.txid());
            insert.setString(3, row.current());
            insert.setString(4, row.previous());
            insert.executeUpdate();
        }
    }
}
