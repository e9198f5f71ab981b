import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.io.FileInputStream;
import java.util.Properties;
import org.apache.activemq.ActiveMQConnectionFactory;

/** Sends `count` messages to a queue, numbered from `first` on, prints `SENT` and stands still. */
public final class JmsSender {
    private JmsSender() {
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            settings.load(file);
        }
        Connection connection = new ActiveMQConnectionFactory(settings.getProperty("broker")).createConnection();
        connection.start();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        String queue = settings.getProperty("queue");
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        boolean isPersistent = Boolean.parseBoolean(settings.getProperty("persistent"));
        producer.setDeliveryMode(isPersistent ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
        int first = Integer.parseInt(settings.getProperty("first"));
        int end = first + Integer.parseInt(settings.getProperty("count"));
        for (int number = first; number < end; number++) {
            TextMessage message = session.createTextMessage("message " + number);
            message.setStringProperty("order_id", queue + "-" + number);
            producer.send(message);
        }
        System.out.println("SENT");
        Thread.sleep(Long.MAX_VALUE);
    }
}
