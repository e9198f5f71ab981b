import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;

/** Settings with the defaults of those that are not given. */
final class Settings {
    private Settings() {}

    static Map<String, String> of(ConfigDef known, Map<String, String> given) {
        Map<String, String> all = new HashMap<>(given);
        known.parse(given).forEach((name, value) -> all.put(name, String.valueOf(value)));
        return all;
    }
}
