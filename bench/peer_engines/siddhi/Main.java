import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.input.InputHandler;
import io.siddhi.core.stream.output.StreamCallback;

/** A join of windows by the times of the rows, and a sum over one. */
public final class Main {
    public static void main(String[] arguments) throws Exception {
        String work = arguments[1];
        Rows rows = new Rows(arguments[0], work);
        long window = Long.parseLong(arguments[2]);
        boolean isJoin = work.equals("join");
        // A window excludes its end, and each is as old as the last row of its own stream.
        String time = "#window.externalTime(ts, " + (window + 1) + " milliseconds)";
        String query = isJoin
                ? "from R" + time + " as r join S" + time + " as s on r.a == s.a and r.ts - s.ts <= " + window + "L"
                        + " select r.a as a, r.b as b, s.c as c, r.ts as x, s.ts as y insert into Found;"
                : "from R" + time + " select ts, a, sum(b) as total group by a insert into Found;";
        SiddhiManager manager = new SiddhiManager();
        SiddhiAppRuntime runtime = manager.createSiddhiAppRuntime("define stream R (ts long, a int, b int);"
                + " define stream S (ts long, a int, c int); " + query);
        runtime.addCallback("Found", new StreamCallback() {
            @Override
            public void receive(Event[] events) {
                for (Event event : events) {
                    Object[] found = event.getData();
                    if (isJoin) {
                        rows.joined((int) found[0], (int) found[1], (int) found[2], (long) found[3], (long) found[4]);
                    } else {
                        rows.summed((long) found[0], (int) found[1], (long) found[2]);
                    }
                }
            }
        });
        runtime.start();
        InputHandler r = runtime.getInputHandler("R");
        InputHandler s = runtime.getInputHandler("S");
        rows.twice(window, (isR, ts, key, value) -> (isR ? r : s).send(ts, new Object[] {ts, key, value}));
        System.exit(0);
    }
}
