import java.time.Instant;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.storm.kafka.spout.FirstPollOffsetStrategy;
import org.apache.storm.kafka.spout.trident.KafkaTridentSpoutConfig;
import org.apache.storm.kafka.spout.trident.KafkaTridentSpoutOpaque;
import org.apache.storm.kafka.spout.trident.KafkaTridentSpoutTransactional;
import org.apache.storm.trident.Stream;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.CombinerAggregator;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;

/** A Trident topology that keeps, for each topic, what it has counted: one entry for each message. */
public final class Counter {
    public static void main(String[] arguments) throws Exception {
        Properties settings = Cluster.settings(arguments);
        KafkaTridentSpoutConfig<byte[], byte[]> spout =
                new KafkaTridentSpoutConfig.Builder<byte[], byte[]>(
                                settings.getProperty("bootstrap.servers"), settings.getProperty("input"))
                        .setProp(ConsumerConfig.GROUP_ID_CONFIG, settings.getProperty("group"))
                        .setProp(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class)
                        .setProp(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class)
                        .setProp(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, settings.getProperty("per.batch"))
                        .setFirstPollOffsetStrategy(FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST)
                        .build();
        TridentTopology topology = new TridentTopology();
        Stream stream =
                settings.getProperty("trident.spout").equals("opaque")
                        ? topology.newStream(settings.getProperty("group"), new KafkaTridentSpoutOpaque<>(spout))
                        : topology.newStream(settings.getProperty("group"), new KafkaTridentSpoutTransactional<>(spout));
        stream.groupBy(new Fields("topic"))
                .persistentAggregate(
                        States.of(settings),
                        new Fields("topic", "partition", "offset", "key", "value"),
                        new Entries(settings.getProperty("life")),
                        new Fields("entries"));
        Cluster.run(topology.build(), settings);
    }

    /** Adds up entries: which message, where it was read, by which start of the topology, and when. */
    private static final class Entries implements CombinerAggregator<String> {
        private final String life;

        Entries(String life) {
            this.life = life;
        }

        @Override
        public String init(TridentTuple tuple) {
            Message message = Message.of(tuple);
            return String.join(
                    "|",
                    message.id(),
                    message.topic(),
                    "" + message.partition(),
                    "" + message.offset(),
                    message.keyHash() == null ? "" : message.keyHash(),
                    message.payloadHash(),
                    life,
                    Instant.now().toString());
        }

        @Override
        public String combine(String one, String other) {
            return one.isEmpty() || other.isEmpty() ? one + other : one + "," + other;
        }

        @Override
        public String zero() {
            return "";
        }
    }
}
