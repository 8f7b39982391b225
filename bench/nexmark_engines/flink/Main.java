import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;

/**
 * Runs queries over streams that it has in memory, each twice; of each time it prints the rows that are there at
 * the end and the seconds of processor time of all threads.
 *
 * <p>Arguments: a folder with a file of tab-separated rows for each stream, whose first line has the names of the
 * columns and the second their types (L, S or T), and a file with a name and a query a line.
 */
public final class Main {
    static final Map<String, Row[]> ROWS = new HashMap<>();
    static final AtomicLong FOUND = new AtomicLong();
    /** Processor time when the first row was taken: planning and starting are not on the bill. */
    static final AtomicLong BEGUN = new AtomicLong();

    static Row row(String name, long number) {
        if (number == 0) {
            BEGUN.compareAndSet(0, cpu());
        }
        return ROWS.get(name)[(int) number];
    }

    static long cpu() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    static Object cell(String type, String text) {
        switch (type) {
            case "L":
                return Long.valueOf(text);
            case "T":
                return Instant.ofEpochMilli(Long.parseLong(text));
            default:
                return text;
        }
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String[][]> heads = new HashMap<>();
        for (String name : new String[] {"person", "auction", "bid"}) {
            List<String> lines = Files.readAllLines(Path.of(arguments[0], name + ".tsv"));
            String[] types = lines.get(1).split("\t");
            heads.put(name, new String[][] {lines.get(0).split("\t"), types});
            Row[] rows = new Row[lines.size() - 2];
            for (int i = 0; i < rows.length; i++) {
                String[] cells = lines.get(i + 2).split("\t", -1);
                rows[i] = new Row(types.length);
                for (int j = 0; j < types.length; j++) {
                    rows[i].setField(j, cell(types[j], cells[j]));
                }
            }
            ROWS.put(name, rows);
        }
        for (String line : Files.readAllLines(Path.of(arguments[1]))) {
            String[] query = line.split("\t");
            for (int pass = 0; pass < 2; pass++) {
                FOUND.set(0);
                BEGUN.set(0);
                run(query[1], heads);
                System.out.println("R " + query[0] + " " + FOUND.get() + " " + (cpu() - BEGUN.get()) / 1e9);
            }
        }
        System.exit(0);
    }

    static void run(String sql, Map<String, String[][]> heads) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
        env.getConfig().enableObjectReuse();
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.getConfig().setLocalTimeZone(ZoneOffset.UTC);
        for (Map.Entry<String, String[][]> one : heads.entrySet()) {
            String name = one.getKey();
            if (!sql.matches(".*\\b" + name + "\\b.*")) {
                continue;
            }
            String[] columns = one.getValue()[0];
            String[] types = one.getValue()[1];
            TypeInformation<?>[] of = new TypeInformation<?>[types.length];
            Schema.Builder schema = Schema.newBuilder();
            for (int i = 0; i < types.length; i++) {
                of[i] = types[i].equals("L") ? Types.LONG : types[i].equals("T") ? Types.INSTANT : Types.STRING;
                schema.column(columns[i], types[i].equals("L") ? DataTypes.BIGINT()
                        : types[i].equals("T") ? DataTypes.TIMESTAMP_LTZ(3) : DataTypes.STRING());
            }
            DataStream<Row> rows = env.fromSequence(0, ROWS.get(name).length - 1)
                    .map(n -> row(name, n)).returns(Types.ROW_NAMED(columns, of));
            tables.createTemporaryView(name, rows, schema.watermark("dateTime", "`dateTime`").build());
        }
        tables.toChangelogStream(tables.sqlQuery(sql))
                .map(row -> {
                    boolean comes = row.getKind() == RowKind.INSERT || row.getKind() == RowKind.UPDATE_AFTER;
                    FOUND.addAndGet(comes ? 1 : -1);
                    return 1;
                })
                .returns(Types.INT)
                .sinkTo(new DiscardingSink<>());
        env.execute();
    }
}
