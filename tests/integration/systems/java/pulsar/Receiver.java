import java.io.FileOutputStream;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Instant;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;

/**
 * One life of a consumer: writes each message to its output, then acknowledges it, until it is killed.
 *
 * Messages whose ids match `held` are kept in hand, neither written nor acknowledged; the first of them also holds up the
 * life where `holds.up` is true. Behind `stop.after` rows the life stands still before it acknowledges the last of them,
 * behind `idle.after` once it has. The output is `rows`, a file of lines, or `keyed`, a folder with a file for
 * each message, which is written over. `ready` and `idle` are files that are made once the life is connected, and idle.
 */
public final class Receiver {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (Reader file = Files.newBufferedReader(Path.of(arguments[0]))) {
            settings.load(file);
        }
        PulsarClient client = PulsarClient.builder().serviceUrl(settings.getProperty("service.url")).build();
        Consumer<byte[]> consumer = client.newConsumer()
                .topic(settings.getProperty("topic"))
                .subscriptionName(settings.getProperty("subscription"))
                .subscriptionType(SubscriptionType.valueOf(settings.getProperty("type", "Exclusive")))
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .receiverQueueSize(Integer.parseInt(settings.getProperty("receiver.queue", "1000")))
                .enableBatchIndexAcknowledgment(Boolean.parseBoolean(settings.getProperty("batch.index", "false")))
                .isAckReceiptEnabled(true)
                .acknowledgmentGroupTime(0, TimeUnit.SECONDS)
                .subscribe();
        Files.writeString(Path.of(settings.getProperty("ready")), "");
        Pattern held = Pattern.compile(settings.getProperty("held", "(?!)"));
        int stop = Integer.parseInt(settings.getProperty("stop.after", "-1"));
        int idle = Integer.parseInt(settings.getProperty("idle.after", "-1"));
        int rows = 0;
        while (true) {
            Message<byte[]> message = consumer.receive();
            String id = message.getProperty("id");
            if (held.matcher(id).matches()) {
                if (Boolean.parseBoolean(settings.getProperty("holds.up", "false"))) {
                    Path release = Path.of(settings.getProperty("release"));
                    while (!Files.exists(release)) {
                        Thread.sleep(20);
                    }
                } else {
                    continue;
                }
            }
            write(settings, message, id, ++rows);
            if (rows == stop) {
                Thread.sleep(Long.MAX_VALUE);
            }
            consumer.acknowledge(message);
            if (rows == idle) {
                Files.writeString(Path.of(settings.getProperty("idle")), "");
                Thread.sleep(Long.MAX_VALUE);
            }
        }
    }

    private static void write(Properties settings, Message<byte[]> message, String id, int number) throws Exception {
        MessageIdAdv place = (MessageIdAdv) message.getMessageId();
        String row = String.format(
                "{\"message_id\":\"%s\",\"key\":\"%s\",\"value\":\"%s\",\"ledger\":%d,\"entry\":%d,\"batch\":%d,"
                        + "\"consumer_id\":\"%s\",\"delivery_sequence\":%d,\"processed_at\":\"%s\"}%n",
                id, message.getKey(), new String(message.getValue(), StandardCharsets.UTF_8).replace("\"", "\\\""),
                place.getLedgerId(), place.getEntryId(), Math.max(0, place.getBatchIndex()),
                settings.getProperty("life"), number, Instant.now());
        Path output = Path.of(settings.getProperty("output"));
        if (settings.getProperty("sink", "rows").equals("keyed")) {
            Path written = Files.writeString(output.resolve("." + id), row);
            Files.move(written, output.resolve(id + ".jsonl"), StandardCopyOption.ATOMIC_MOVE);
        } else {
            try (FileOutputStream file = new FileOutputStream(output.toFile(), true)) {
                file.write(row.getBytes(StandardCharsets.UTF_8));
                file.getFD().sync();
            }
        }
    }
}
