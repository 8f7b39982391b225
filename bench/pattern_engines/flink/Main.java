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
    static long shift;
    static final AtomicLong[] matches = {new AtomicLong(), new AtomicLong()};

    /** An event as Flink serialises it best: a plain object. */
    public static class Tick {
        public long ts;
        public int symbol;
        public double price;

        public Tick() {}
    }

    // When the matcher saw the first event of each pass. The second was read ahead, at our cost.
    static final long[] cpu = new long[3];
    static final long[] clock = new long[3];

    static void saw(int pass) {
        if (cpu[pass] == 0) {
            cpu[pass] = Events.cpu();
            clock[pass] = System.nanoTime();
        }
    }

    static int pass(Tick tick) {
        return tick.ts < shift ? 0 : 1;
    }

    static Tick tick(long index) {
        int size = events.ts.length;
        int place = (int) (index % size);
        Tick tick = new Tick();
        tick.ts = events.ts[place] + (index < size ? 0 : shift);
        tick.symbol = events.symbol[place];
        tick.price = events.price[place];
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
                saw(pass(tick));
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
        shift = events.shift(window);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
        env.getConfig().enableObjectReuse();
        DataGeneratorSource<Tick> source = new DataGeneratorSource<>(
                Main::tick, 2L * events.ts.length, RateLimiterStrategy.noOp(),
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
                matches[pass(match.get("a").get(0))].incrementAndGet();
                out.collect(1);
            }
        }).sinkTo(new DiscardingSink<>());
        env.execute();
        saw(2);
        for (int pass = 0; pass < 2; pass++) {
            Events.report(matches[pass].get(), clock[pass + 1] - clock[pass],
                    cpu[pass + 1] - cpu[pass]);
        }
        System.exit(0);
    }
}
