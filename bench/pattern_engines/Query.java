import java.util.ArrayList;
import java.util.List;

/**
 * A sequence of symbols with a floor for the first price and conditions between two prices, as
 * "any ABCD 60 0>1.1*1 2<0.9*3": the first word says whether every event that fits continues a match
 * (any), the next one only (next), or the very next event (strict).
 */
final class Query {
    /** price of `earlier` > (or <) factor × price of `later`. */
    static final class Pair {
        final int earlier;
        final int later;
        final boolean greater;
        final double factor;

        Pair(String text) {
            greater = text.contains(">");
            String[] sides = text.split("[<>]");
            earlier = Integer.parseInt(sides[0]);
            factor = Double.parseDouble(sides[1].split("\\*")[0]);
            later = Integer.parseInt(sides[1].split("\\*")[1]);
        }

        boolean holds(double before, double now) {
            return greater ? before > factor * now : before < factor * now;
        }

        /** As text, the later price being that of the event at hand. */
        String text() {
            return name(earlier) + ".price " + (greater ? ">" : "<") + " " + factor + " * price";
        }
    }

    final boolean any;
    final boolean strict;
    final int[] kinds;
    final double floor;
    final List<Pair> pairs = new ArrayList<>();

    Query(String text) {
        String[] words = text.split(" ");
        any = words[0].equals("any");
        strict = words[0].equals("strict");
        kinds = words[1].chars().map(c -> c - 'A').toArray();
        floor = Double.parseDouble(words[2]);
        for (int i = 3; i < words.length; i++) {
            pairs.add(new Pair(words[i]));
        }
    }

    static String name(int place) {
        return String.valueOf((char) ('a' + place));
    }

    List<Pair> at(int place) {
        List<Pair> found = new ArrayList<>();
        for (Pair pair : pairs) {
            if (pair.later == place) {
                found.add(pair);
            }
        }
        return found;
    }

    /** What an event at a place must fulfil, but for its symbol. */
    List<String> conditions(int place) {
        List<String> found = new ArrayList<>();
        if (place == 0) {
            found.add("price > " + floor);
        }
        for (Pair pair : at(place)) {
            found.add(pair.text());
        }
        return found;
    }
}
