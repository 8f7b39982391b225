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

    static long cpu;
    static long clock;

    static Tick tick(long index) {
        if (index == 0) { // what Flink needs to start is no part of it
            cpu = Events.cpu();
            clock = System.nanoTime();
        }
        Tick tick = new Tick();
        tick.ts = events.ts[(int) index];
        tick.symbol = events.symbol[(int) index];
        tick.price = events.price[(int) index];
        return tick;
    }

    static IterativeCondition<Tick> condition(String text, int place) {
        Query query = new Query(text);
        int kind = query.kinds[place];
        int size = query.at(place).size();
        int[] earlier = new int[size];
        double[] factor = new double[size];
        boolean[] greater = new boolean[size];
        for (int i = 0; i < size; i++) {
            Query.Pair pair = query.at(place).get(i);
            earlier[i] = pair.earlier;
            factor[i] = pair.factor;
            greater[i] = pair.greater;
        }
        double floor = place == 0 ? query.floor : Double.NEGATIVE_INFINITY;
        return new IterativeCondition<Tick>() {
            @Override
            public boolean filter(Tick tick, Context<Tick> context) throws Exception {
                if (tick.symbol != kind || tick.price <= floor) {
                    return false;
                }
                for (int i = 0; i < size; i++) {
                    double before = first(context, Query.name(earlier[i])).price;
                    double now = factor[i] * tick.price;
                    if (greater[i] ? before <= now : before >= now) {
                        return false;
                    }
                }
                return true;
            }
        };
    }

    static Tick first(IterativeCondition.Context<Tick> context, String name) throws Exception {
        return context.getEventsForPattern(name).iterator().next();
    }

    public static void main(String[] arguments) throws Exception {
        events = Events.read(arguments[0]);
        Query query = new Query(arguments[1]);
        long window = Long.parseLong(arguments[2]);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
        env.getConfig().enableObjectReuse();
        DataGeneratorSource<Tick> source = new DataGeneratorSource<>(
                Main::tick, events.ts.length, RateLimiterStrategy.noOp(),
                TypeInformation.of(Tick.class));
        DataStream<Tick> ticks = env.fromSource(source,
                WatermarkStrategy.<Tick>forMonotonousTimestamps()
                        .withTimestampAssigner((tick, before) -> tick.ts), "ticks");
        // The window is inclusive; Flink's is not.
        Pattern<Tick, Tick> pattern =
                Pattern.<Tick>begin("a").where(condition(arguments[1], 0));
        for (int i = 1; i < query.kinds.length; i++) {
            String name = Query.name(i);
            pattern = (query.any ? pattern.followedByAny(name)
                            : query.strict ? pattern.next(name) : pattern.followedBy(name))
                    .where(condition(arguments[1], i));
        }
        pattern = pattern.within(Duration.ofMillis(window + 1));
        CEP.pattern(ticks, pattern).process(new PatternProcessFunction<Tick, Integer>() {
            @Override
            public void processMatch(
                    Map<String, List<Tick>> match, Context context, Collector<Integer> out) {
                matches.incrementAndGet();
                out.collect(1);
            }
        }).sinkTo(new DiscardingSink<>());
        env.execute();
        Events.report(matches.get(), System.nanoTime() - clock, Events.cpu() - cpu);
        System.exit(0);
    }
}
