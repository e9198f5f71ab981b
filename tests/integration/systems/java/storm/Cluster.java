import java.io.FileReader;
import java.io.IOException;
import java.util.List;
import java.util.Properties;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.generated.StormTopology;

/** Storm in this process, whose ZooKeeper is another one, with one topology. */
final class Cluster {
    private Cluster() {}

    static Properties settings(String[] arguments) throws IOException {
        Properties settings = new Properties();
        try (FileReader file = new FileReader(arguments[0])) {
            settings.load(file);
        }
        System.setProperty("java.io.tmpdir", settings.getProperty("folder"));
        return settings;
    }

    /**
     * Runs the topology until the process ends. Each start has a `storm.zookeeper.root` of its own: a Nimbus that was
     * killed leaves its leadership and its topologies there. Trident's state is elsewhere, in
     * `transactional.zookeeper.root`, and stays.
     */
    static void run(StormTopology topology, Properties settings) throws Exception {
        LocalCluster.Builder builder =
                new LocalCluster.Builder()
                        .withDaemonConf(Config.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS, true)
                        .withDaemonConf(Config.STORM_ZOOKEEPER_SERVERS, List.of("127.0.0.1"))
                        .withDaemonConf(
                                Config.STORM_ZOOKEEPER_PORT, Integer.valueOf(settings.getProperty("zookeeper.port")))
                        .withDaemonConf(Config.STORM_ZOOKEEPER_ROOT, "/storm-" + System.currentTimeMillis());
        Config config = new Config();
        for (String name : settings.stringPropertyNames()) {
            if (name.startsWith("topology.")) {
                config.put(name, Integer.valueOf(settings.getProperty(name)));
            }
        }
        LocalCluster cluster = builder.build();
        cluster.submitTopology(settings.getProperty("group"), config, topology);
        Thread.currentThread().join();
    }
}
