import java.io.File;
import java.io.FileInputStream;
import java.util.Properties;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.store.kahadb.KahaDBPersistenceAdapter;

/** A broker of queues over STOMP and OpenWire, with the settings of the file that is its one argument. */
public final class Broker {

    private Broker() {
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            settings.load(file);
        }
        File data = new File(settings.getProperty("data"));
        KahaDBPersistenceAdapter store = new KahaDBPersistenceAdapter();
        store.setDirectory(new File(data, "kahadb"));
        store.setArchiveDataLogs(Boolean.parseBoolean(settings.getProperty("archiveDataLogs", "true")));
        store.setDirectoryArchive(new File(data, "archive"));
        store.setConcurrentStoreAndDispatchQueues(
            Boolean.parseBoolean(settings.getProperty("concurrentStoreAndDispatchQueues", "false")));
        store.setJournalMaxFileLength(Integer.parseInt(settings.getProperty("journalMaxFileLength", "1048576")));
        store.setCleanupInterval(Integer.parseInt(settings.getProperty("cleanupInterval", "1000")));
        store.setCheckpointInterval(Integer.parseInt(settings.getProperty("checkpointInterval", "1000")));
        BrokerService broker = new BrokerService();
        broker.setBrokerName("audited");
        broker.setDataDirectory(data.getPath());
        broker.setPersistenceAdapter(store);
        broker.setUseJmx(false);
        broker.getSystemUsage().getStoreUsage().setLimit(64L << 20);
        broker.getSystemUsage().getTempUsage().setLimit(64L << 20);
        broker.getSystemUsage().getMemoryUsage().setLimit(32L << 20);
        broker.addConnector("stomp://127.0.0.1:" + settings.getProperty("stomp"));
        broker.addConnector("tcp://127.0.0.1:" + settings.getProperty("openwire"));
        broker.start();
        broker.waitUntilStarted();
        System.out.println("READY");
        broker.waitUntilStopped();
    }
}
