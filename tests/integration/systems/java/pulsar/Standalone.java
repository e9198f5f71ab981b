import java.io.OutputStream;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.Properties;
import org.apache.pulsar.PulsarStandaloneStarter;
import org.apache.pulsar.metadata.api.MetadataStore;
import org.apache.pulsar.metadata.api.MetadataStoreConfig;
import org.apache.pulsar.metadata.api.MetadataStoreFactory;

/** A broker with its own bookie and metadata: the settings are its own, but `data`, the folder, and `bookkeeper.port`. */
public final class Standalone {
    private static final String BOOKIES = "/ledgers/available";
    private static final String READ_ONLY = "readonly";

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (Reader file = Files.newBufferedReader(Path.of(arguments[0]))) {
            settings.load(file);
        }
        Path data = Path.of((String) settings.remove("data"));
        String port = (String) settings.remove("bookkeeper.port");
        Path config = Path.of(arguments[0] + ".conf");
        try (OutputStream file = Files.newOutputStream(config)) {
            settings.store(file, null);
        }
        Path metadata = data.resolve("metadata");
        if (Files.exists(metadata)) {
            forgetBookies(metadata);
        }
        PulsarStandaloneStarter.main(new String[] {
            "--config", config.toString(),
            "--no-functions-worker", "--no-stream-storage",
            "--metadata-dir", metadata.toString(),
            "--bookkeeper-dir", data.resolve("bookkeeper").toString(),
            "--bookkeeper-port", port,
        });
    }

    /**
     * Removes the registration of a bookie that was killed, which ZooKeeper would have done at the end of its session.
     * A bookie that finds one of its own may remove it and register again without end.
     */
    private static void forgetBookies(Path metadata) throws Exception {
        MetadataStoreConfig config = MetadataStoreConfig.builder().build();
        try (MetadataStore store = MetadataStoreFactory.create("rocksdb://" + metadata, config)) {
            for (String bookie : store.getChildren(BOOKIES).get()) {
                if (!bookie.equals(READ_ONLY)) {
                    store.deleteIfExists(BOOKIES + "/" + bookie, Optional.empty()).get();
                }
            }
        }
    }
}
