import java.io.FileWriter;
import java.io.Reader;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.BatcherBuilder;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.TypedMessageBuilder;
import org.apache.pulsar.client.api.transaction.Transaction;

/**
 * One life of a producer: sends the messages `prefix`-first to last, and notes each attempt with its outcome.
 *
 * `transaction` is none, commit, abort or open; an open one outlives the process. With `batch` above 1 so many messages
 * go in one entry. `sequence.first` is the sequence id of the first message, the client's own choice without it.
 */
public final class Sender {
    private final Properties settings;
    private final Writer ledger;
    private final int first;
    private final int last;

    private Sender(Properties settings) throws Exception {
        this.settings = settings;
        this.ledger = new FileWriter(Path.of(settings.getProperty("ledger")).toFile(), StandardCharsets.UTF_8, true);
        this.first = Integer.parseInt(settings.getProperty("first"));
        this.last = Integer.parseInt(settings.getProperty("last"));
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (Reader file = Files.newBufferedReader(Path.of(arguments[0]))) {
            settings.load(file);
        }
        new Sender(settings).run();
        Runtime.getRuntime().halt(0);
    }

    private void run() throws Exception {
        String end = settings.getProperty("transaction", "none");
        PulsarClient client = PulsarClient.builder()
                .serviceUrl(settings.getProperty("service.url"))
                .enableTransaction(!end.equals("none"))
                .build();
        int batch = Integer.parseInt(settings.getProperty("batch", "1"));
        ProducerBuilder<byte[]> builder = client.newProducer()
                .topic(settings.getProperty("topic"))
                .producerName(settings.getProperty("producer.name"))
                .sendTimeout(0, TimeUnit.SECONDS)
                .enableBatching(batch > 1);
        if (batch > 1) {
            builder.batchingMaxMessages(batch).batchingMaxPublishDelay(10, TimeUnit.SECONDS)
                    .batcherBuilder(BatcherBuilder.DEFAULT);
        }
        Producer<byte[]> producer = builder.create();
        Transaction transaction = end.equals("none")
                ? null
                : client.newTransaction().withTransactionTimeout(1, TimeUnit.HOURS).build().get();
        List<CompletableFuture<MessageId>> answers = new ArrayList<>();
        List<Instant> attempts = new ArrayList<>();
        List<Instant> answered = new ArrayList<>();
        for (int number = first; number <= last; number++) {
            TypedMessageBuilder<byte[]> message =
                    transaction == null ? producer.newMessage() : producer.newMessage(transaction);
            String order = settings.getProperty("sequence.first");
            if (order != null) {
                message.sequenceId(Long.parseLong(order) + number - first);
            }
            attempts.add(Instant.now());
            answers.add(message.key(key(number)).property("id", id(number)).value(value(number)).sendAsync());
            if (batch == 1) {
                answers.get(answers.size() - 1).get();
            } else if (answers.size() % batch == 0) {
                producer.flush();
            }
            answered.add(Instant.now());
        }
        producer.flush();
        if (end.equals("commit")) {
            transaction.commit().get();
        } else if (end.equals("abort")) {
            transaction.abort().get();
        }
        String outcome = end.equals("abort") ? "failed" : end.equals("open") ? "unknown" : "acked";
        for (int number = first; number <= last; number++) {
            int place = number - first;
            MessageIdAdv sent = (MessageIdAdv) answers.get(place).get();
            note(number, sent, attempts.get(place), batch == 1 ? answered.get(place) : Instant.now(), outcome,
                    transaction == null ? null : transaction.getTxnID().toString());
        }
        ledger.close();
    }

    private String id(int number) {
        return settings.getProperty("prefix") + "-" + number;
    }

    private String key(int number) {
        return "k" + number % Integer.parseInt(settings.getProperty("keys", "1"));
    }

    private byte[] value(int number) {
        return ("{\"order_id\":\"" + id(number) + "\"}").getBytes(StandardCharsets.UTF_8);
    }

    private void note(int number, MessageIdAdv sent, Instant attempt, Instant answer, String outcome, String txn)
            throws Exception {
        boolean isStored = sent.getLedgerId() >= 0;
        String place = isStored
                ? String.format("\"ledger\":%d,\"entry\":%d,\"batch\":%d,", sent.getLedgerId(), sent.getEntryId(),
                        Math.max(0, sent.getBatchIndex()))
                : "";
        String ofTransaction = txn == null ? "" : "\"transaction_id\":\"" + txn + "\",";
        ledger.write(String.format(
                "{\"message_id\":\"%s\",\"key\":\"%s\",\"value\":\"%s\",\"producer_id\":\"%s\","
                        + "\"producer_session\":\"%s\",\"sequence\":%d,%s%s\"attempted_at\":\"%s\","
                        + "\"completed_at\":\"%s\",\"outcome\":\"%s\"}%n",
                id(number), key(number), new String(value(number), StandardCharsets.UTF_8).replace("\"", "\\\""),
                settings.getProperty("producer.name"), settings.getProperty("session"), number - first, place,
                ofTransaction, attempt, answer, outcome));
        ledger.flush();
    }
}
