import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Runs the cases of a file and prints the matches of each, one a line.
 *
 * <p>A case: "CASE id window strategy" (or "SQL id" and the query on the next line), elements "E
 * kind role" in order (role one, many or none), conditions "C element op element plus" (an element
 * of -1 is nothing: the number alone), events "V ts kind x", where an x of - is NULL, and "END".
 */
public final class Main {
    /** So many queries are one job. */
    static final int TOGETHER = 25;

    /** One event. */
    public static class Tick {
        public long ts;
        public int id;
        public String kind;
        public Integer x;

        public Tick() {}
    }

    record Element(String kind, String role) {}

    record Condition(int element, String op, int other, int plus) implements java.io.Serializable {
        boolean holds(int left, int right) {
            int b = right + plus;
            switch (op) {
                case "<":
                    return left < b;
                case ">":
                    return left > b;
                default:
                    return left == b;
            }
        }
    }

    static IterativeCondition<Tick> condition(int number, String kind, List<Condition> all) {
        List<Condition> own = new ArrayList<>();
        for (Condition c : all) {
            if (Math.max(c.element(), c.other()) == number) {
                own.add(c);
            }
        }
        return new IterativeCondition<Tick>() {
            @Override
            public boolean filter(Tick tick, Context<Tick> context) throws Exception {
                if (!kind.equals("ANY") && !tick.kind.equals(kind)) {
                    return false;
                }
                for (Condition c : own) {
                    int left = value(c.element(), tick, context);
                    int right = c.other() < 0 ? 0 : value(c.other(), tick, context);
                    if (!c.holds(left, right)) {
                        return false;
                    }
                }
                return true;
            }

            private int value(int element, Tick tick, Context<Tick> context) throws Exception {
                if (element == number) {
                    return tick.x;
                }
                return context.getEventsForPattern("v" + element).iterator().next().x;
            }
        };
    }

    static Pattern<Tick, ?> pattern(
            String strategy, long window, List<Element> elements, List<Condition> conditions) {
        Pattern<Tick, Tick> made = null;
        for (int i = 0; i < elements.size(); i++) {
            String name = "v" + i;
            Element element = elements.get(i);
            if (made == null) {
                made = Pattern.begin(name);
            } else if (element.role().equals("none")) {
                made = made.notFollowedBy(name);
            } else if (strategy.equals("STRICT")) {
                made = made.next(name);
            } else if (strategy.equals("NEXT")) {
                made = made.followedBy(name);
            } else {
                made = made.followedByAny(name);
            }
            made = made.where(condition(i, element.kind(), conditions));
            if (element.role().equals("many")) {
                made = made.oneOrMore().allowCombinations();
            }
        }
        // The window is inclusive; Flink's is not.
        return made.within(Duration.ofMillis(window + 1));
    }

    static DataStream<Tick> stream(StreamExecutionEnvironment env, List<Tick> ticks) {
        return env.fromData(ticks, TypeInformation.of(Tick.class))
                .assignTimestampsAndWatermarks(
                        WatermarkStrategy.<Tick>forMonotonousTimestamps()
                                .withTimestampAssigner((tick, before) -> tick.ts));
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        List<String> lines = Files.readAllLines(Path.of(arguments[0]));
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
        Map<String, DataStream<String>> asked = new LinkedHashMap<>();
        String[] head = {};
        String sql = null;
        List<Element> elements = new ArrayList<>();
        List<Condition> conditions = new ArrayList<>();
        List<Tick> ticks = new ArrayList<>();
        for (int at = 0; at < lines.size(); at++) {
            String[] words = lines.get(at).split(" ");
            switch (words[0]) {
                case "CASE":
                    head = words;
                    break;
                case "SQL":
                    head = words;
                    sql = lines.get(++at);
                    break;
                case "E":
                    elements.add(new Element(words[1], words[2]));
                    break;
                case "C":
                    conditions.add(new Condition(Integer.parseInt(words[1]), words[2],
                            Integer.parseInt(words[3]), Integer.parseInt(words[4])));
                    break;
                case "V":
                    Tick tick = new Tick();
                    tick.ts = Long.parseLong(words[1]);
                    tick.id = ticks.size();
                    tick.kind = words[2];
                    tick.x = words[3].equals("-") ? null : Integer.valueOf(words[3]);
                    ticks.add(tick);
                    break;
                default:
                    if (sql != null) {
                        try {
                            asked.put(head[1], ask(env, head[1], sql, ticks));
                        } catch (Exception refused) {
                            String said = refused.getMessage().lines().findFirst().orElse("");
                            out.println("CASE " + head[1] + "\nR refused: " + said);
                        }
                        if (asked.size() == TOGETHER) {
                            answer(asked, out);
                            env = StreamExecutionEnvironment.createLocalEnvironment(1);
                        }
                    } else {
                        out.println("CASE " + head[1]);
                        match(StreamExecutionEnvironment.createLocalEnvironment(1), pattern(head[3], Long.parseLong(head[2]), elements, conditions),
                                elements, ticks, out);
                    }
                    elements = new ArrayList<>();
                    conditions = new ArrayList<>();
                    ticks = new ArrayList<>();
                    sql = null;
            }
        }
        answer(asked, out);
        out.println("DONE");
        System.exit(0);
    }

    static void match(StreamExecutionEnvironment env, Pattern<Tick, ?> pattern,
            List<Element> elements, List<Tick> ticks, PrintStream out) throws Exception {
        int size = elements.size();
        DataStream<String> found = CEP.pattern(stream(env, ticks), pattern)
                .select(new PatternSelectFunction<Tick, String>() {
                    @Override
                    public String select(Map<String, List<Tick>> match) {
                        StringBuilder text = new StringBuilder("M");
                        for (int i = 0; i < size; i++) {
                            text.append(i == 0 ? " " : ";");
                            for (Tick tick : match.getOrDefault("v" + i, List.of())) {
                                text.append(tick.id).append(",");
                            }
                        }
                        return text.toString();
                    }
                }, Types.STRING);
        try (CloseableIterator<String> rows = found.executeAndCollect()) {
            rows.forEachRemaining(out::println);
        }
    }

    /** A query over all events as table t, those of kind A as table r, and those of kind B as table s. */
    static DataStream<String> ask(StreamExecutionEnvironment env, String number, String sql,
            List<Tick> ticks) {
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.getConfig().setLocalTimeZone(ZoneOffset.UTC);
        DataStream<Row> rows = stream(env, ticks)
                .map(t -> Row.of(Instant.ofEpochMilli(t.ts), t.id, t.x, t.kind))
                .returns(Types.ROW_NAMED(new String[] {"ts", "id", "x", "kind"},
                        Types.INSTANT, Types.INT, Types.INT, Types.STRING));
        Schema schema = Schema.newBuilder()
                .column("ts", DataTypes.TIMESTAMP_LTZ(3)).column("id", DataTypes.INT())
                .column("x", DataTypes.INT()).column("kind", DataTypes.STRING())
                .watermark("ts", "ts").build();
        tables.createTemporaryView("t", rows, schema);
        for (String[] part : new String[][] {{"r", "A"}, {"s", "B"}}) {
            tables.executeSql("CREATE TEMPORARY VIEW " + part[0]
                    + " AS SELECT ts, id, x FROM t WHERE kind = '" + part[1] + "'");
        }
        return tables.toDataStream(tables.sqlQuery(sql)).map(row -> {
            StringBuilder text = new StringBuilder(number);
            for (int i = 0; i < row.getArity(); i++) {
                Object cell = row.getField(i);
                text.append(" ").append(cell instanceof LocalDateTime
                        ? ((LocalDateTime) cell).toInstant(ZoneOffset.UTC).toEpochMilli() : cell);
            }
            return text.toString();
        }).returns(Types.STRING);
    }

    /** Runs queries as one job, whose start costs more than they do. */
    static void answer(Map<String, DataStream<String>> asked, PrintStream out) throws Exception {
        Map<String, List<String>> found = new LinkedHashMap<>();
        DataStream<String> all = null;
        for (Map.Entry<String, DataStream<String>> one : asked.entrySet()) {
            found.put(one.getKey(), new ArrayList<>());
            all = all == null ? one.getValue() : all.union(one.getValue());
        }
        asked.clear();
        if (all == null) {
            return;
        }
        try (CloseableIterator<String> rows = all.executeAndCollect()) {
            while (rows.hasNext()) {
                String[] row = rows.next().split(" ", 2);
                found.get(row[0]).add("R " + row[1]);
            }
        }
        for (Map.Entry<String, List<String>> one : found.entrySet()) {
            out.println("CASE " + one.getKey());
            one.getValue().forEach(out::println);
        }
    }
}
