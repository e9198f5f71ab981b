import java.io.Serializable;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.storm.trident.state.OpaqueValue;
import org.apache.storm.trident.state.StateFactory;
import org.apache.storm.trident.state.TransactionalValue;
import org.apache.storm.trident.state.map.IBackingMap;
import org.apache.storm.trident.state.map.NonTransactionalMap;
import org.apache.storm.trident.state.map.OpaqueMap;
import org.apache.storm.trident.state.map.TransactionalMap;

/** States of each of Trident's kinds, in a table. */
final class States {
    private States() {}

    static StateFactory of(Properties settings) {
        return (conf, metrics, index, count) ->
                switch (settings.getProperty("trident.state")) {
                    case "opaque" -> OpaqueMap.build(new Backing<OpaqueValue>(settings, new Opaque()));
                    case "transactional" ->
                            TransactionalMap.build(new Backing<TransactionalValue>(settings, new Transactional()));
                    default -> NonTransactionalMap.build(new Backing<String>(settings, new Plain()));
                };
    }

    /** How a kind of value is written as a row. */
    private interface Form<T> extends Serializable {
        T value(StateTable.Row row);

        StateTable.Row row(T value);
    }

    private record Opaque() implements Form<OpaqueValue> {
        @Override
        public OpaqueValue<String> value(StateTable.Row row) {
            return new OpaqueValue<>(row.txid(), row.current(), row.previous());
        }

        @Override
        public StateTable.Row row(OpaqueValue value) {
            return new StateTable.Row(value.getCurrTxid(), (String) value.getCurr(), (String) value.getPrev());
        }
    }

    private record Transactional() implements Form<TransactionalValue> {
        @Override
        public TransactionalValue<String> value(StateTable.Row row) {
            return new TransactionalValue<>(row.txid(), row.current());
        }

        @Override
        public StateTable.Row row(TransactionalValue value) {
            return new StateTable.Row(value.getTxid(), (String) value.getVal(), null);
        }
    }

    private record Plain() implements Form<String> {
        @Override
        public String value(StateTable.Row row) {
            return row.current();
        }

        @Override
        public StateTable.Row row(String value) {
            return new StateTable.Row(null, value, null);
        }
    }

    /** Reads and writes rows; stands still after it has written the entry of an offset that a play names. */
    private static final class Backing<T> implements IBackingMap<T> {
        private final Form<T> form;
        private final StateTable table;
        private final String last;

        Backing(Properties settings, Form<T> form) {
            this.form = form;
            last = settings.getProperty("stand.still.after");
            try {
                table = new StateTable(settings);
            } catch (SQLException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public List<T> multiGet(List<List<Object>> keys) {
            List<T> values = new ArrayList<>();
            try {
                for (List<Object> key : keys) {
                    StateTable.Row row = table.row((String) key.get(0));
                    values.add(row == null ? null : form.value(row));
                }
            } catch (SQLException error) {
                throw new IllegalStateException(error);
            }
            return values;
        }

        @Override
        public void multiPut(List<List<Object>> keys, List<T> values) {
            try {
                for (int place = 0; place < values.size(); place++) {
                    StateTable.Row row = form.row(values.get(place));
                    String key = (String) keys.get(place).get(0);
                    table.put(key, row);
                    if (last != null && row.current().contains(key + "|0|" + last + "|")) {
                        new CountDownLatch(1).await();
                    }
                }
            } catch (SQLException | InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }
    }
}
