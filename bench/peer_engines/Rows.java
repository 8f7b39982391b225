import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The rows of a run, and what an engine has found of them. A stream is a file of int32 pairs, the key and the value
 * of each tick. Every engine gets all rows twice, the second time later than any window, so that what is measured is
 * compiled code.
 */
final class Rows {
    /** Hands an engine a row of R or of S. */
    interface Sender {
        void send(boolean isR, long ts, int key, int value) throws Exception;
    }

    /** The time of the first row: no window begins before 0, where Kafka Streams would cut it. */
    private static final long START = 1_000_000;
    private static final long FACTOR = 0x9E3779B97F4A7C15L;

    private final IntBuffer r;
    private final IntBuffer s;
    private long begin = START;
    private long count;
    private long digest;

    /** `s` is null for a work on R alone. */
    Rows(String folder, String work) throws IOException {
        r = read(Path.of(folder, "R.bin"));
        s = work.equals("join") ? read(Path.of(folder, "S.bin")) : null;
    }

    private static IntBuffer read(Path path) throws IOException {
        return ByteBuffer.wrap(Files.readAllBytes(path)).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer();
    }

    /** Takes a result of the join. */
    void joined(long key, long b, long c, long tsOfR, long tsOfS) {
        long oldest = Math.min(tsOfR, tsOfS) - begin;
        long newest = Math.max(tsOfR, tsOfS) - begin;
        add(mixed(mixed(mixed(mixed(mixed(0, key), b), c), oldest), newest));
    }

    /** Takes a result of the sum. */
    void summed(long ts, long key, long sum) {
        add(mixed(mixed(mixed(0, ts - begin), key), sum));
    }

    private static long mixed(long hash, long value) {
        long product = (hash ^ value) * FACTOR;
        return product ^ product >>> 32;
    }

    private void add(long hash) {
        count++;
        digest += hash;
    }

    /** Sends all twice and prints, for each pass: results, digest, seconds of the processor and of the clock. */
    void twice(long window, Sender sender) throws Exception {
        int ticks = r.capacity() / 2;
        for (int pass = 0; pass < 2; pass++) {
            long cpu = cpu();
            long clock = System.nanoTime();
            for (int i = 0; i < ticks; i++) {
                sender.send(true, begin + i, r.get(2 * i), r.get(2 * i + 1));
                if (s != null) {
                    sender.send(false, begin + i, s.get(2 * i), s.get(2 * i + 1));
                }
            }
            clock = System.nanoTime() - clock;
            cpu = cpu() - cpu;
            System.out.printf("pass %d %s %.6f %.6f%n", count, Long.toUnsignedString(digest), cpu / 1e9, clock / 1e9);
            count = 0;
            digest = 0;
            begin += ticks + 2 * window + 60_000;
        }
    }

    /** Processor time of all threads, garbage collection included. */
    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }
}
