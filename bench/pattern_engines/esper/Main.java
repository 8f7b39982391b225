import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;
import com.espertech.esper.runtime.client.EPEventService;

/** `every` before each event but the first keeps a partial match for later events of its kind. */
public final class Main {
    private static long matches;

    /** Contiguous events are rows of MATCH_RECOGNIZE there; three take no two minutes. */
    private static String rows(Query query) {
        StringBuilder names = new StringBuilder();
        StringBuilder defines = new StringBuilder();
        for (int i = 0; i < query.kinds.length; i++) {
            String name = Query.name(i);
            names.append(" ").append(name);
            defines.append(i == 0 ? "" : ", ").append(name).append(" as ").append(name);
            defines.append(".symbol = ").append(query.kinds[i]);
            query.conditions(i).forEach(one -> defines.append(" and ")
                    .append(one.replaceAll("(?<![.a-z])price", name + ".price")));
        }
        return "select * from Tick match_recognize (measures a.price as price"
                + " after match skip to next row pattern (" + names + " ) define " + defines + ")";
    }

    public static void main(String[] arguments) throws Exception {
        Events events = Events.read(arguments[0]);
        Query query = new Query(arguments[1]);
        long window = Long.parseLong(arguments[2]);
        Configuration configuration = new Configuration();
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        configuration.getCommon().addEventType("Tick", new String[] {"symbol", "price"},
                new Object[] {int.class, double.class});
        StringBuilder rest = new StringBuilder();
        for (int i = 0; i < query.kinds.length; i++) {
            StringBuilder filter = new StringBuilder("Tick(symbol = " + query.kinds[i]);
            query.conditions(i).forEach(one -> filter.append(" and ").append(one));
            rest.append(i < 2 ? "" : " -> ").append(i == 0 || query.any ? "every " : "");
            rest.append(Query.name(i)).append("=").append(filter).append(i == 0 ? ") -> (" : ")");
        }
        // The window is inclusive; the timer is not.
        String text = "select a.price from pattern [" + rest + ") where timer:within("
                + (window + 1) + " milliseconds)]";
        if (query.strict) {
            text = rows(query);
        }
        EPRuntime runtime = EPRuntimeProvider.getDefaultRuntime(configuration);
        CompilerArguments compile = new CompilerArguments(configuration);
        EPCompiled compiled = EPCompilerProvider.getCompiler().compile(text, compile);
        EPStatement statement = runtime.getDeploymentService().deploy(compiled).getStatements()[0];
        statement.addListener((fresh, old, s, r) -> matches += fresh.length);
        EPEventService service = runtime.getEventService();
        service.clockExternal();
        events.twice(window, () -> matches, (i, ts) -> {
            service.advanceTime(ts);
            service.sendEventObjectArray(
                    new Object[] {events.symbol[i], events.price[i]}, "Tick");
        });
        System.exit(0);
    }
}
