import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HexFormat;
import java.util.Properties;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * Takes the messages of a queue with AUTO_ACKNOWLEDGE, by `receive()` or with a listener, and writes each down.
 *
 * With `receive()` it stands still when it was given one message more than `limit`, and has not written it; with a
 * listener in the call that has written the last of `limit`. It prints `HELD` then.
 */
public final class JmsConsumer {
    private final Properties settings;
    private final FileOutputStream output;
    private int processed;

    private JmsConsumer(Properties settings) throws Exception {
        this.settings = settings;
        output = new FileOutputStream(settings.getProperty("output"), true);
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            settings.load(file);
        }
        Connection connection = new ActiveMQConnectionFactory(settings.getProperty("broker")).createConnection();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createQueue(settings.getProperty("queue")));
        new JmsConsumer(settings).consume(connection, consumer);
    }

    private void consume(Connection connection, MessageConsumer consumer) throws Exception {
        int limit = Integer.parseInt(settings.getProperty("limit", "-1"));
        if (Boolean.parseBoolean(settings.getProperty("listens"))) {
            consumer.setMessageListener(message -> {
                write(message);
                if (processed == limit) {
                    standStill();
                }
            });
            connection.start();
            Thread.sleep(Long.MAX_VALUE);
        }
        connection.start();
        while (true) {
            Message message = consumer.receive();
            if (processed == limit) {
                standStill();
            }
            write(message);
        }
    }

    private void write(Message message) {
        try {
            byte[] body = ((TextMessage) message).getText().getBytes(StandardCharsets.UTF_8);
            String row = String.format(
                "{\"message_id\":\"%s\",\"payload_hash\":\"%s\",\"processed_at\":\"%s\",\"consumer_id\":\"%s\"}%n",
                message.getStringProperty("order_id"),
                HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(body)),
                Instant.now().truncatedTo(ChronoUnit.MILLIS), settings.getProperty("name"));
            output.write(row.getBytes(StandardCharsets.UTF_8));
            output.getFD().sync();
            processed++;
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static void standStill() {
        System.out.println("HELD");
        try {
            Thread.sleep(Long.MAX_VALUE);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }
}
