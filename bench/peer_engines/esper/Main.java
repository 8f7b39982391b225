import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.EventBean;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPEventService;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;

/** A join of time windows, and a sum over one, with a clock that the rows set. */
public final class Main {
    public static void main(String[] arguments) throws Exception {
        String work = arguments[1];
        Rows rows = new Rows(arguments[0], work);
        long window = Long.parseLong(arguments[2]);
        Configuration configuration = new Configuration();
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        Object[] types = {long.class, int.class, int.class};
        configuration.getCommon().addEventType("R", new String[] {"ts", "a", "b"}, types);
        configuration.getCommon().addEventType("S", new String[] {"ts", "a", "c"}, types);
        // A window excludes its end; ours includes it.
        String time = "#time(" + (window + 1) + " milliseconds)";
        boolean isJoin = work.equals("join");
        String text = "@EventRepresentation('objectarray') select " + (isJoin
                ? "r.a as a, r.b as b, s.c as c, r.ts as x, s.ts as y from R" + time + " as r, S" + time
                        + " as s where r.a = s.a"
                : "ts, a, sum(b) as total from R" + time + " group by a");
        EPRuntime runtime = EPRuntimeProvider.getDefaultRuntime(configuration);
        EPCompiled compiled = EPCompilerProvider.getCompiler().compile(text, new CompilerArguments(configuration));
        EPStatement statement = runtime.getDeploymentService().deploy(compiled).getStatements()[0];
        statement.addListener((fresh, old, s, r) -> {
            for (EventBean one : fresh) {
                Object[] found = (Object[]) one.getUnderlying();
                if (isJoin) {
                    rows.joined((int) found[0], (int) found[1], (int) found[2], (long) found[3], (long) found[4]);
                } else {
                    rows.summed((long) found[0], (int) found[1], (int) found[2]);
                }
            }
        });
        EPEventService service = runtime.getEventService();
        service.clockExternal();
        rows.twice(window, (isR, ts, key, value) -> {
            if (isR) {
                service.advanceTime(ts);
            }
            service.sendEventObjectArray(new Object[] {ts, key, value}, isR ? "R" : "S");
        });
        System.exit(0);
    }
}
