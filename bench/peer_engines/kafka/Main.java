import java.nio.file.Files;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/**
 * A join of streams, and a sum over sliding windows, without a broker. Results are not written to a topic, and stores
 * are in memory, with neither a log nor a cache: the driver would flush a store on disk after every row.
 */
public final class Main {
    /** A value has the time of its row above these bits, since joiners are not told of it. */
    private static final int BITS = 10;

    private static WindowBytesStoreSupplier store(String name, long kept, long window, boolean hasDuplicates) {
        return Stores.inMemoryWindowStore(name, Duration.ofMillis(kept), Duration.ofMillis(window), hasDuplicates);
    }

    /** Of the windows that a row is in, the one that ends with it has its sum. */
    private static final class Ending extends ContextualProcessor<Windowed<Integer>, Long, Void, Void> {
        private final Rows rows;
        private long last = -1;

        private Ending(Rows rows) {
            this.rows = rows;
        }

        @Override
        public void process(Record<Windowed<Integer>, Long> found) {
            // If the window is also the one behind an older row, it is given twice.
            if (found.key().window().end() == found.timestamp() && found.timestamp() != last) {
                last = found.timestamp();
                rows.summed(found.timestamp(), found.key().key(), found.value());
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        String work = arguments[1];
        Rows rows = new Rows(arguments[0], work);
        long window = Long.parseLong(arguments[2]);
        StreamsBuilder builder = new StreamsBuilder();
        KStream<Integer, Long> r = builder.stream("R", Consumed.with(Serdes.Integer(), Serdes.Long()));
        if (work.equals("join")) {
            KStream<Integer, Long> s = builder.stream("S", Consumed.with(Serdes.Integer(), Serdes.Long()));
            StreamJoined<Integer, Long, Long> stores = StreamJoined
                    .with(Serdes.Integer(), Serdes.Long(), Serdes.Long())
                    .withThisStoreSupplier(store("kept-r", 2 * window, 2 * window, true))
                    .withOtherStoreSupplier(store("kept-s", 2 * window, 2 * window, true))
                    .withLoggingDisabled();
            JoinWindows within = JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMillis(window));
            long low = (1 << BITS) - 1;
            r.join(s, (b, c) -> new long[] {b, c}, within, stores).foreach((key, found) -> rows.joined(
                    key, found[0] & low, found[1] & low, found[0] >> BITS, found[1] >> BITS));
        } else {
            r.groupByKey(Grouped.with(Serdes.Integer(), Serdes.Long()))
                    .windowedBy(SlidingWindows.ofTimeDifferenceWithNoGrace(Duration.ofMillis(window)))
                    .aggregate(() -> 0L, (key, value, sum) -> sum + value,
                            Materialized.<Integer, Long>as(store("sums", 2 * window, window, false))
                                    .withKeySerde(Serdes.Integer()).withValueSerde(Serdes.Long())
                                    .withLoggingDisabled().withCachingDisabled())
                    .toStream().process(() -> new Ending(rows));
        }
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "peers");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("peers").toString());
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), settings)) {
            TestInputTopic<Integer, Long> ofR = driver.createInputTopic(
                    "R", Serdes.Integer().serializer(), Serdes.Long().serializer());
            TestInputTopic<Integer, Long> ofS = work.equals("join") ? driver.createInputTopic(
                    "S", Serdes.Integer().serializer(), Serdes.Long().serializer()) : null;
            boolean isJoin = ofS != null;
            rows.twice(window, (isR, ts, key, value) -> (isR ? ofR : ofS)
                    .pipeInput(key, isJoin ? ts << BITS | value : value, ts));
        }
        System.exit(0);
    }
}
