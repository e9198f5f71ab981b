import java.nio.charset.StandardCharsets;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;

/** A record's key and value, and the id of the job that writes it again. */
public final class Message {
    public byte[] key;
    public byte[] value;
    public String job;

    public Message() {}

    Message(byte[] key, byte[] value, String job) {
        this.key = key;
        this.value = value;
        this.job = job;
    }

    /** Takes key and value of a record as they are. */
    static final class Reading implements KafkaRecordDeserializationSchema<Message> {
        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<Message> messages) {
            messages.collect(new Message(record.key(), record.value(), ""));
        }

        @Override
        public TypeInformation<Message> getProducedType() {
            return TypeInformation.of(Message.class);
        }
    }

    /** Writes them to a topic, with the job in a header. */
    static final class Writing implements KafkaRecordSerializationSchema<Message> {
        private final String topic;

        Writing(String topic) {
            this.topic = topic;
        }

        @Override
        public ProducerRecord<byte[], byte[]> serialize(Message message, KafkaSinkContext context, Long timestamp) {
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, 0, message.key, message.value);
            record.headers().add("job", message.job.getBytes(StandardCharsets.US_ASCII));
            return record;
        }
    }
}
