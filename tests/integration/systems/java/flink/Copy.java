import java.io.FileReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.flink.api.common.JobID;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.CheckpointType;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;

/**
 * Runs the job on a cluster in this process, and does what files in the folder `commands` ask for: `checkpoint`,
 * `savepoint`, `stop` (with a savepoint) and `cancel`. A command's file is gone once it was carried out.
 */
public final class Copy {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (FileReader file = new FileReader(arguments[0])) {
            settings.load(file);
        }
        Configuration configuration = new Configuration();
        for (String name : settings.stringPropertyNames()) {
            if (name.matches("(execution|restart-strategy|taskmanager|state)\\..*")) {
                configuration.setString(name, settings.getProperty(name));
            }
        }
        configuration.setString("rest.bind-port", "0");
        configuration.setString("rest.address", "127.0.0.1");
        MiniClusterConfiguration small =
                new MiniClusterConfiguration.Builder()
                        .setConfiguration(configuration)
                        .setNumTaskManagers(1)
                        .setNumSlotsPerTaskManager(1)
                        .build();
        try (MiniCluster cluster = new MiniCluster(small)) {
            cluster.start();
            JobID job = cluster.submitJob(Job.graph(settings, configuration)).get().getJobID();
            while (!cluster.getJobStatus(job).get().isGloballyTerminalState()) {
                try {
                    carryOut(cluster, job, Path.of(settings.getProperty("commands")), settings);
                } catch (ExecutionException error) {
                    // The job does not run yet, or has just ended: the command is tried again, or nobody waits for it.
                }
                Thread.sleep(20);
            }
        }
    }

    private static void carryOut(MiniCluster cluster, JobID job, Path commands, Properties settings) throws Exception {
        String savepoints = settings.getProperty("execution.checkpointing.savepoint-dir");
        if (Files.exists(commands.resolve("checkpoint"))) {
            cluster.triggerCheckpoint(job, CheckpointType.DEFAULT).get();
            Files.delete(commands.resolve("checkpoint"));
        } else if (Files.exists(commands.resolve("savepoint"))) {
            cluster.triggerSavepoint(job, savepoints, false, SavepointFormatType.CANONICAL).get();
            Files.delete(commands.resolve("savepoint"));
        } else if (Files.exists(commands.resolve("stop"))) {
            cluster.stopWithSavepoint(job, savepoints, false, SavepointFormatType.CANONICAL).get();
            Files.delete(commands.resolve("stop"));
        } else if (Files.exists(commands.resolve("cancel"))) {
            cluster.cancelJob(job).get();
            Files.delete(commands.resolve("cancel"));
        }
    }
}
