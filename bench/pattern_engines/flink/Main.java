import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;
import java.util.List;
import java.util.Map;

/** followedByAny is skip-till-any-match; one task slot, heap state. */
public final class Main {
    static Events events;
    static final AtomicLong matches = new AtomicLong();

    /** An event as Flink serialises it best: a plain object. */
    public static class Tick {
        public long ts;
        public int symbol;
        public double price;

        public Tick() {}
    }

    static Tick tick(long index) {
        Tick tick = new Tick();
        tick.ts = events.ts[(int) index];
        tick.symbol = events.symbol[(int) index];
        tick.price = events.price[(int) index];
        return tick;
    }

    static IterativeCondition<Tick> condition(int kind, int place, boolean falls) {
        return new IterativeCondition<Tick>() {
            @Override
            public boolean filter(Tick tick, Context<Tick> context) throws Exception {
                if (tick.symbol != kind) {
                    return false;
                }
                switch (place) {
                    case 0:
                        return tick.price > 60;
                    case 1:
                        return first(context, "a").price > 1.1 * tick.price;
                    case 3:
                        double before = first(context, "c").price;
                        return falls ? before > 1.1 * tick.price : before < 0.9 * tick.price;
                    default:
                        return true;
                }
            }
        };
    }

    static Tick first(IterativeCondition.Context<Tick> context, String name) throws Exception {
        return context.getEventsForPattern(name).iterator().next();
    }

    public static void main(String[] arguments) throws Exception {
        events = Events.read(arguments[0]);
        String query = arguments[1];
        long window = Long.parseLong(arguments[2]);
        int[] kinds = Events.sequence(query);
        boolean falls = query.equals("Q3");
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
        env.getConfig().enableObjectReuse();
        DataGeneratorSource<Tick> source = new DataGeneratorSource<>(
                Main::tick, events.ts.length, RateLimiterStrategy.noOp(),
                TypeInformation.of(Tick.class));
        DataStream<Tick> ticks = env.fromSource(source,
                WatermarkStrategy.<Tick>forMonotonousTimestamps()
                        .withTimestampAssigner((tick, before) -> tick.ts), "ticks");
        // The window is inclusive; Flink's is not.
        Pattern<Tick, ?> pattern = Pattern.<Tick>begin("a").where(condition(kinds[0], 0, falls))
                .followedByAny("b").where(condition(kinds[1], 1, falls))
                .followedByAny("c").where(condition(kinds[2], 2, falls))
                .followedByAny("d").where(condition(kinds[3], 3, falls))
                .within(Duration.ofMillis(window + 1));
        CEP.pattern(ticks, pattern).process(new PatternProcessFunction<Tick, Integer>() {
            @Override
            public void processMatch(
                    Map<String, List<Tick>> match, Context context, Collector<Integer> out) {
                matches.incrementAndGet();
                out.collect(1);
            }
        }).sinkTo(new DiscardingSink<>());
        long cpu = Events.cpu();
        long clock = System.nanoTime();
        env.execute();
        Events.report(matches.get(), System.nanoTime() - clock, Events.cpu() - cpu);
        System.exit(0);
    }
}
