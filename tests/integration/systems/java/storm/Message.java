import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.storm.tuple.ITuple;

/** A message as the output has it: its id, where it was read, and the fingerprints that the sender wrote down as well. */
record Message(String id, String topic, int partition, long offset, String keyHash, String payloadHash)
        implements Serializable {
    private static final Pattern ID = Pattern.compile("\"order_id\":\"([^\"]+)\"");

    /** Returns the message of a tuple that a Kafka spout emitted. */
    static Message of(ITuple tuple) {
        String topic = tuple.getStringByField("topic");
        int partition = tuple.getIntegerByField("partition");
        long offset = tuple.getLongByField("offset");
        byte[] value = tuple.getBinaryByField("value");
        Matcher found = ID.matcher(new String(value, StandardCharsets.UTF_8));
        if (!found.find()) {
            throw new IllegalArgumentException("no order_id at " + topic + "/" + partition + "/" + offset);
        }
        byte[] key = tuple.getBinaryByField("key");
        return new Message(found.group(1), topic, partition, offset, fingerprint(key), fingerprint(value));
    }

    private static String fingerprint(byte[] content) {
        try {
            return content == null
                    ? null
                    : HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content));
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }
}
