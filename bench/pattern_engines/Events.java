import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;

/** The events of a run, in columns: (ts, symbol) as int64 pairs, then prices as float64. */
final class Events {
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
        Events events = new Events(data.capacity() / 24);
        for (int i = 0; i < events.ts.length; i++) {
            events.ts[i] = data.getLong();
            events.symbol[i] = (int) data.getLong();
            events.price[i] = data.getDouble();
        }
        return events;
    }

    /** Processor time of all threads, garbage collection included. */
    static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean)
                        ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    static void report(long matches, long clock, long cpu) {
        System.out.printf("matches %d clock %.3f cpu %.3f%n", matches, clock / 1e9, cpu / 1e9);
    }
}
