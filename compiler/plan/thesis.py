"""Plans routes as in the thesis: every subquery has its own tags, in the order of subqueries.

For streams (X, Y): tag n is "Y probed X", n+1 "X probed Y". For (X, Y, Z): n "Y probed X, next Z",
n+1 final; n+2 "Z probed Y, next X", n+3 final; n+4 "X probed Z, next Y", n+5 final. In general,
streams arrive in the order second, third, ..., first, and each probes those before it, cyclically
downwards; four streams follow the same scheme.
"""

from __future__ import annotations

from seustream.compiler.plan.requests import Requests
from seustream.compiler.plan.routes import RoutePlan
from seustream.compiler.plan.statistics import Estimate


def plan(requests: Requests, slots: int, estimate: Estimate) -> RoutePlan:
    routes = RoutePlan.start(slots)
    for request in requests.rows:
        mine = request.slots
        for arriving in (*range(1, len(mine)), 0):
            if not request.subquery.completed_by(mine[arriving]):
                continue
            tag = routes.tags[mine[arriving]]
            for back in range(1, len(mine)):
                area = mine[(arriving - back) % len(mine)]
                after = routes.new_tag(tag.bound | {area})
                after.subqueries.add(request.subquery.number)
                routes.step(request, requests, tag, area, after)
                tag = after
            tag.queries.update(request.subquery.parents)
    return routes
