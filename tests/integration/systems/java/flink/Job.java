import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Arrays;
import java.util.Properties;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;
import org.apache.flink.streaming.api.graph.StreamGraph;

/** Copies each record of the topic `input` to the topic `output`, and its value as a line to the folder `files`. */
final class Job {
    static StreamGraph graph(Properties settings, Configuration configuration) {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment(configuration);
        environment.setParallelism(1);
        KafkaSource<Message> source =
                KafkaSource.<Message>builder()
                        .setBootstrapServers(settings.getProperty("bootstrap.servers"))
                        .setTopics(settings.getProperty("input"))
                        .setGroupId(settings.getProperty("group"))
                        .setStartingOffsets(OffsetsInitializer.earliest())
                        .setProperty("isolation.level", "read_committed")
                        .setDeserializer(new Message.Reading())
                        .build();
        DataStream<Message> read =
                environment
                        .fromSource(source, WatermarkStrategy.noWatermarks(), "input")
                        .uid("input")
                        .map(new Pausing(Long.parseLong(settings.getProperty("pause.ms"))));
        DataStream<Message> messages =
                read.keyBy(message -> Arrays.hashCode(message.value))
                        .map(new Signing())
                        .uid("signing");
        if (settings.containsKey("output")) {
            messages.sinkTo(topic(settings)).name("output").uid("output");
        }
        if (settings.containsKey("files")) {
            messages.map(Job::line)
                    .sinkTo(files(settings))
                    .name("files")
                    .uid("files");
        }
        return environment.getStreamGraph();
    }

    /** Returns the message as JSON, with the job that wrote it and when. */
    private static String line(Message message) {
        String value = new String(message.value, StandardCharsets.UTF_8);
        return String.format("{\"value\":%s,\"job\":\"%s\",\"written_at\":\"%s\"}", value, message.job, Instant.now());
    }

    private static KafkaSink<Message> topic(Properties settings) {
        return KafkaSink.<Message>builder()
                .setBootstrapServers(settings.getProperty("bootstrap.servers"))
                .setDeliveryGuarantee(DeliveryGuarantee.valueOf(settings.getProperty("guarantee")))
                .setTransactionalIdPrefix(settings.getProperty("group"))
                .setProperty("transaction.timeout.ms", settings.getProperty("transaction.timeout.ms"))
                .setRecordSerializer(new Message.Writing(settings.getProperty("output")))
                .build();
    }

    private static FileSink<String> files(Properties settings) {
        return FileSink.forRowFormat(new Path(settings.getProperty("files")), new SimpleStringEncoder<String>("UTF-8"))
                .withBucketAssigner(new BasePathBucketAssigner<>())
                .withRollingPolicy(OnCheckpointRollingPolicy.build())
                .build();
    }

    /** Takes its time over each message, before the source hands out the next one. */
    private static final class Pausing implements MapFunction<Message, Message> {
        private final long pause;

        Pausing(long pause) {
            this.pause = pause;
        }

        @Override
        public Message map(Message message) throws InterruptedException {
            Thread.sleep(pause);
            return message;
        }
    }

    /** Writes the job's id, that of one life of the application, into each message, and counts them. */
    private static final class Signing extends RichMapFunction<Message, Message> {
        private String job;
        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) {
            job = getRuntimeContext().getJobInfo().getJobId().toString();
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Long.class));
        }

        @Override
        public Message map(Message message) throws Exception {
            count.update(count.value() == null ? 1 : count.value() + 1);
            return new Message(message.key, message.value, job);
        }
    }
}
