import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.LongSupplier;

/**
 * The events of a run, in columns: (ts, symbol) as int64 pairs, then prices as float64. Every engine
 * gets them twice, the second time later than any window, so that what is measured is compiled code.
 */
final class Events {
    /** Hands an engine the event at a place, with the time it has in this pass. */
    interface Sender {
        void send(int place, long ts) throws Exception;
    }

    final long[] ts;
    final int[] symbol;
    final double[] price;

    private Events(int size) {
        ts = new long[size];
        symbol = new int[size];
        price = new double[size];
    }

    static Events read(String path) throws IOException {
        ByteBuffer data = ByteBuffer.wrap(Files.readAllBytes(Path.of(path)));
        data.order(ByteOrder.LITTLE_ENDIAN);
        int size = data.capacity() / 24;
        Events events = new Events(size + 1);
        for (int i = 0; i < size; i++) {
            events.ts[i] = data.getLong();
            events.symbol[i] = (int) data.getLong();
            events.price[i] = data.getDouble();
        }
        // One that fits nothing: the last event and the first of the second pass are no neighbours.
        events.ts[size] = events.ts[size - 1] + 1;
        events.symbol[size] = -1;
        return events;
    }

    /** Processor time of all threads, garbage collection included. */
    static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean)
                        ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    /** What the second pass is later by: no match has events of both. */
    long shift(long window) {
        return ts[ts.length - 1] + window + 60_000;
    }

    /** Sends all twice and reports both passes. */
    void twice(long window, LongSupplier matches, Sender sender) throws Exception {
        long before = 0;
        for (int pass = 0; pass < 2; pass++) {
            long cpu = cpu();
            long clock = System.nanoTime();
            for (int i = 0; i < ts.length; i++) {
                sender.send(i, ts[i] + pass * shift(window));
            }
            report(matches.getAsLong() - before, System.nanoTime() - clock, cpu() - cpu);
            before = matches.getAsLong();
        }
    }

    static void report(long matches, long clock, long cpu) {
        System.out.printf("matches %d clock %.3f cpu %.3f%n", matches, clock / 1e9, cpu / 1e9);
    }
}
