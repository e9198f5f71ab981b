import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Instant;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Pattern;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTaskContext;

/** One life of a sink's task: names its rows, paces it, and reports the records that it refuses. */
final class Life {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final String id = UUID.randomUUID().toString();
    private final SinkTaskContext context;
    private final long pause;
    private final Pattern refused;

    Life(Map<String, String> settings, SinkTaskContext context) {
        this.context = context;
        this.pause = Long.parseLong(settings.get("pause.ms"));
        this.refused = Pattern.compile(settings.get("refused"));
    }

    /** Adds the settings that every sink here has. */
    static ConfigDef settings() {
        return new ConfigDef()
                .define("pause.ms", ConfigDef.Type.LONG, 0, ConfigDef.Importance.LOW, "time taken over a record")
                .define("refused", ConfigDef.Type.STRING, "(?!)", ConfigDef.Importance.LOW, "values that are refused");
    }

    String id() {
        return id;
    }

    /** Takes its time over a record, so that a kill finds some that are output and not committed. */
    void pause() {
        try {
            Thread.sleep(pause);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    /** Returns whether the record is refused; it is reported, which puts it into the dead letter queue if there is one. */
    boolean refuses(SinkRecord record) {
        if (!refused.matcher(String.valueOf(record.value())).find()) {
            return false;
        }
        context.errantRecordReporter().report(record, new ConnectException("this value is refused"));
        return true;
    }

    /** Returns the record as a line of JSON: key and value as they were, and who wrote it when. */
    String line(SinkRecord record) {
        ObjectNode row = JSON.createObjectNode();
        row.put("key", (String) record.key()).put("value", (String) record.value());
        row.put("consumer_id", id).put("processed_at", Instant.now().toString());
        try {
            return JSON.writeValueAsString(row) + "\n";
        } catch (JsonProcessingException error) {
            throw new ConnectException(error);
        }
    }
}
