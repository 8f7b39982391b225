import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.input.InputHandler;
import io.siddhi.core.stream.output.StreamCallback;

/** `every` before each event but the first keeps a partial match for later events of its kind. */
public final class Main {
    private static long matches;

    public static void main(String[] arguments) throws Exception {
        Events events = Events.read(arguments[0]);
        Query query = new Query(arguments[1]);
        long window = Long.parseLong(arguments[2]);
        // `within` counts from the last `every`, so the others are held against the first too.
        String whole = " and ts - a.ts <= " + window + "L";
        StringBuilder pattern = new StringBuilder();
        for (int i = 0; i < query.kinds.length; i++) {
            pattern.append(i == 0 ? "" : query.strict ? ", " : " -> ").append(i == 0 || query.any ? "every " : "");
            pattern.append(Query.name(i)).append("=Ticks[symbol == ").append(query.kinds[i]);
            query.conditions(i).forEach(one -> pattern.append(" and ").append(one));
            pattern.append(i == 0 ? "" : whole).append("]");
        }
        String app = "@app:playback define stream Ticks (symbol int, price double, ts long);"
                + " from " + pattern + " within " + window + " milliseconds"
                + " select a.price as price insert into Found;";
        SiddhiManager manager = new SiddhiManager();
        SiddhiAppRuntime runtime = manager.createSiddhiAppRuntime(app);
        runtime.addCallback("Found", new StreamCallback() {
            @Override
            public void receive(Event[] found) {
                matches += found.length;
            }
        });
        InputHandler handler = runtime.getInputHandler("Ticks");
        runtime.start();
        events.twice(window, () -> matches, (i, ts) ->
                handler.send(ts, new Object[] {events.symbol[i], events.price[i], ts}));
        System.exit(0);
    }
}
