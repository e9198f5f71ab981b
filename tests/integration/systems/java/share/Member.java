import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A member of a share group that writes each record of the topic `input` down, and acknowledges it before or after.
 *
 * After `limit` records it stands still with what it was given; it does so before the acknowledgement of the last of
 * them where `leaves.last` is true. It prints `HELD` then. Where there is a `wakes.at`, it stands still until that file is
 * there, and goes on with what it was given, whatever became of its locks. An acknowledgement that the broker refuses it
 * prints as `REFUSED`; one that is too late for a record below the group's start offset the broker passes over.
 */
public final class Member {
    private static final Pattern ID = Pattern.compile("\"order_id\": ?\"([^\"]*)\"");

    private final Properties settings;
    private final FileOutputStream output;
    private final Set<String> rejected;
    private final Set<String> released;
    private int processed;

    private Member(Properties settings) throws Exception {
        this.settings = settings;
        output = new FileOutputStream(settings.getProperty("output"), true);
        rejected = offsets("reject");
        released = offsets("release.first");
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            settings.load(file);
        }
        readFromTheBeginning(settings);
        new Member(settings).run();
    }

    private static void readFromTheBeginning(Properties settings) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", settings.getProperty("bootstrap.servers")))) {
            ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, settings.getProperty("group"));
            List<AlterConfigOp> wanted = new java.util.ArrayList<>();
            wanted.add(set("share.auto.offset.reset", "earliest"));
            if (settings.containsKey("lock.ms")) {
                wanted.add(set("share.record.lock.duration.ms", settings.getProperty("lock.ms")));
            }
            admin.incrementalAlterConfigs(Map.of(group, wanted)).all().get();
        }
    }

    private static AlterConfigOp set(String name, String value) {
        return new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
    }

    private void run() throws Exception {
        boolean isFirst = Boolean.parseBoolean(settings.getProperty("acknowledges.first", "false"));
        Map<String, Object> named = Map.of(
            "bootstrap.servers", settings.getProperty("bootstrap.servers"),
            "group.id", settings.getProperty("group"),
            "share.acknowledgement.mode", "explicit",
            "key.deserializer", ByteArrayDeserializer.class,
            "value.deserializer", ByteArrayDeserializer.class);
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(named)) {
            consumer.subscribe(List.of(settings.getProperty("input")));
            while (true) {
                List<ConsumerRecord<byte[], byte[]>> records = new java.util.ArrayList<>();
                consumer.poll(Duration.ofMillis(200)).forEach(records::add);
                if (isFirst && !records.isEmpty()) {
                    records.forEach(record -> consumer.acknowledge(record, AcknowledgeType.ACCEPT));
                    commit(consumer);
                }
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    if (isFirst) {
                        process(record, true);
                    } else {
                        take(consumer, record);
                    }
                }
            }
        }
    }

    private void take(KafkaShareConsumer<byte[], byte[]> consumer, ConsumerRecord<byte[], byte[]> record)
            throws Exception {
        String offset = Long.toString(record.offset());
        if (rejected.contains(offset)) {
            consumer.acknowledge(record, AcknowledgeType.REJECT);
        } else if (released.contains(offset) && record.deliveryCount().orElse((short) 1) == 1) {
            consumer.acknowledge(record, AcknowledgeType.RELEASE);
        } else {
            process(record, Boolean.parseBoolean(settings.getProperty("leaves.last", "false")));
            consumer.acknowledge(record, AcknowledgeType.ACCEPT);
        }
        commit(consumer);
        if (processed == limit()) {
            standStill();
        }
    }

    private void process(ConsumerRecord<byte[], byte[]> record, boolean standsStill) throws Exception {
        Matcher found = ID.matcher(new String(record.value(), StandardCharsets.UTF_8));
        if (!found.find()) {
            throw new IllegalStateException("no order_id at offset " + record.offset());
        }
        String row = String.format(
            "{\"message_id\":\"%s\",\"topic\":\"%s\",\"partition\":%d,\"offset\":%d,\"payload_hash\":\"%s\","
                + "\"processed_at\":\"%s\",\"consumer_id\":\"%s\"}%n",
            found.group(1), record.topic(), record.partition(), record.offset(),
            HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(record.value())),
            Instant.now(), settings.getProperty("member"));
        output.write(row.getBytes(StandardCharsets.UTF_8));
        output.getFD().sync();
        processed++;
        if (standsStill && processed == limit()) {
            standStill();
        }
    }

    private void commit(KafkaShareConsumer<byte[], byte[]> consumer) {
        consumer.commitSync().forEach((partition, error) -> error.ifPresent(found -> {
            if (!settings.containsKey("wakes.at")) {
                throw found;
            }
            System.out.println("REFUSED " + found.getClass().getSimpleName());
        }));
    }

    private void standStill() throws InterruptedException {
        System.out.println("HELD");
        Path wakes = settings.containsKey("wakes.at") ? Path.of(settings.getProperty("wakes.at")) : null;
        while (wakes == null || !Files.exists(wakes)) {
            Thread.sleep(100);
        }
    }

    private int limit() {
        return Integer.parseInt(settings.getProperty("limit", "-1"));
    }

    private Set<String> offsets(String name) {
        return Arrays.stream(settings.getProperty(name, "").split(" ")).collect(Collectors.toSet());
    }
}
