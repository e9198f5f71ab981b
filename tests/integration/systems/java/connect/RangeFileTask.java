import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Writes a file below `+tmp`, and gives it its name when it is whole; what has no name yet is not output. */
public final class RangeFileTask extends SinkTask {
    private static final Pattern NAME = Pattern.compile("(.+)\\+(\\d+)\\+(\\d+)\\+(\\d+)\\.jsonl");
    private final Map<TopicPartition, List<SinkRecord>> held = new HashMap<>();
    private final Map<TopicPartition, OffsetAndMetadata> written = new HashMap<>();
    private Life life;
    private Path folder;
    private int size;
    private boolean goesByNames;

    @Override
    public void start(Map<String, String> settings) {
        life = new Life(settings, context);
        folder = Path.of(settings.get("folder"));
        size = Integer.parseInt(settings.get("flush.size"));
        goesByNames = settings.get("resume").equals("names");
        try {
            Files.createDirectories(folder.resolve("+tmp"));
        } catch (IOException error) {
            throw new ConnectException(error);
        }
    }

    @Override
    public void open(Collection<TopicPartition> partitions) {
        for (TopicPartition partition : partitions) {
            held.remove(partition);
            written.remove(partition);
            OptionalLong last = lastNamed(partition);
            if (goesByNames && last.isPresent()) {
                context.offset(partition, last.getAsLong() + 1);
                written.put(partition, new OffsetAndMetadata(last.getAsLong() + 1));
            }
        }
    }

    @Override
    public void put(Collection<SinkRecord> records) {
        for (SinkRecord record : records) {
            life.pause();
            if (life.refuses(record)) {
                continue;
            }
            TopicPartition partition = new TopicPartition(record.topic(), record.kafkaPartition());
            List<SinkRecord> file = held.computeIfAbsent(partition, none -> new ArrayList<>());
            file.add(record);
            if (file.size() >= size) {
                write(partition, file);
                file.clear();
            }
        }
    }

    /** What is committed is what has a name; the framework commits it whether or not a restart goes by it. */
    @Override
    public Map<TopicPartition, OffsetAndMetadata> preCommit(Map<TopicPartition, OffsetAndMetadata> read) {
        return new HashMap<>(written);
    }

    @Override
    public void stop() {}

    @Override
    public String version() {
        return "1";
    }

    private void write(TopicPartition partition, List<SinkRecord> file) {
        long first = file.get(0).kafkaOffset();
        long last = file.get(file.size() - 1).kafkaOffset();
        String name = String.format("%s+%d+%010d+%010d.jsonl", partition.topic(), partition.partition(), first, last);
        StringBuilder lines = new StringBuilder();
        file.forEach(record -> lines.append(life.line(record)));
        Path whole = folder.resolve("+tmp").resolve(UUID.randomUUID() + "_tmp.jsonl");
        try {
            Files.writeString(whole, lines);
            Files.move(whole, folder.resolve(name), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException error) {
            throw new ConnectException(error);
        }
        written.put(partition, new OffsetAndMetadata(last + 1));
    }

    private OptionalLong lastNamed(TopicPartition partition) {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> NAME.matcher(file.getFileName().toString()))
                    .filter(Matcher::matches)
                    .filter(name -> name.group(1).equals(partition.topic()))
                    .filter(name -> Integer.parseInt(name.group(2)) == partition.partition())
                    .mapToLong(name -> Long.parseLong(name.group(4)))
                    .max();
        } catch (IOException error) {
            throw new ConnectException(error);
        }
    }
}
