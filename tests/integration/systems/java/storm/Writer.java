import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.tuple.Tuple;

/**
 * Writes each tuple at once, and acknowledges so many together. It does what a play asks for: fails the first try of
 * some offsets, is slow over the first try of one, or stands still after the write of one.
 */
final class Writer extends BaseRichBolt {
    private static final long NOWHERE = -1;

    private final Properties settings;
    private final Set<Long> tried = new HashSet<>();
    private transient List<Tuple> written;
    private transient OutputCollector collector;
    private transient Tables tables;

    Writer(Properties settings) {
        this.settings = settings;
    }

    @Override
    public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector output) {
        collector = output;
        written = new ArrayList<>();
        try {
            tables = new Tables(settings, context.getStormId());
        } catch (SQLException error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public void execute(Tuple tuple) {
        Message message = Message.of(tuple);
        boolean isFirst = tried.add(message.offset());
        if (isFirst && List.of(settings.getProperty("fail.first", "").split(" ")).contains("" + message.offset())) {
            collector.fail(tuple);
            return;
        }
        try {
            if (isFirst && message.offset() == number("slow.first")) {
                TimeUnit.MILLISECONDS.sleep(number("slow.ms"));
            }
            tables.insert("plain", List.of(message));
            tables.insert("keyed", List.of(message));
            if (message.offset() == number("stand.still.after")) {
                new java.util.concurrent.CountDownLatch(1).await();
            }
        } catch (SQLException | InterruptedException error) {
            throw new IllegalStateException(error);
        }
        written.add(tuple);
        if (written.size() == number("together")) {
            written.forEach(collector::ack);
            written.clear();
        }
    }

    private long number(String name) {
        return Long.parseLong(settings.getProperty(name, "" + NOWHERE));
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {}
}
