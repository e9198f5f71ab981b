import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.storm.kafka.spout.FirstPollOffsetStrategy;
import org.apache.storm.kafka.spout.KafkaSpout;
import org.apache.storm.kafka.spout.KafkaSpoutConfig;
import org.apache.storm.kafka.spout.KafkaSpoutConfig.ProcessingGuarantee;
import org.apache.storm.topology.TopologyBuilder;

/** A topology that writes each record of the topic `input` as a row: a Kafka spout, and a bolt. */
public final class Loader {
    private static final long COMMIT_PERIOD_MS = 500;

    public static void main(String[] arguments) throws Exception {
        Properties settings = Cluster.settings(arguments);
        KafkaSpoutConfig<byte[], byte[]> spout =
                new KafkaSpoutConfig.Builder<byte[], byte[]>(
                                settings.getProperty("bootstrap.servers"), settings.getProperty("input"))
                        .setProp(ConsumerConfig.GROUP_ID_CONFIG, settings.getProperty("group"))
                        .setProp(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class)
                        .setProp(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class)
                        .setOffsetCommitPeriodMs(COMMIT_PERIOD_MS)
                        .setProcessingGuarantee(
                                ProcessingGuarantee.valueOf(settings.getProperty("processing.guarantee")))
                        .setFirstPollOffsetStrategy(
                                FirstPollOffsetStrategy.valueOf(
                                        settings.getProperty("first.poll.offset.strategy", "UNCOMMITTED_EARLIEST")))
                        .build();
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("input", new KafkaSpout<>(spout), 1);
        builder.setBolt("writer", new Writer(settings), 1).shuffleGrouping("input");
        Cluster.run(builder.createTopology(), settings);
    }
}
