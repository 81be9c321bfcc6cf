import type { IncomingMessage, RequestListener } from 'node:http';
import { MAX_TIMER_DELAY } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import { type ExpositionContext, renderMetrics } from './exposition.ts';
import { readiness } from './readiness.ts';

/** What {@link createEndpointHandler} needs. */
export interface EndpointsContext extends ExpositionContext {
  /** How long the next planned task has been due, in ms on the boot clock. */
  overdue(): number;
  readonly log: Log;
}

interface MetricsResponse {
  readonly status: number;
  readonly type?: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** How long a task may be overdue, in ms on the boot clock; the same as for systemd's watchdog. */
const MAX_OVERDUE = MAX_TIMER_DELAY + 30_000;

const TEXT_TYPE = 'text/plain; charset=utf-8';
const JSON_TYPE = 'application/json';
const NOT_FOUND_TEXT = 'Not found. The paths are /metrics, /healthz and /readyz.\n';

/** Handles requests of Prometheus, and of programs that supervise the daemon. */
export function createEndpointHandler(context: EndpointsContext): RequestListener {
  const routes: Readonly<Record<string, () => Promise<MetricsResponse>>> = {
    async '/metrics'() {
      return { status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', body: await renderMetrics(context) };
    },
    async '/healthz'() {
      const overdue = context.overdue();
      if (overdue <= MAX_OVERDUE) return json(200, { healthy: true });
      const reason = `the scheduler is ${Math.round(overdue / 1000)} s overdue`;
      return json(503, { healthy: false, reason });
    },
    async '/readyz'() {
      const { appliances } = await context.status();
      const result = readiness(appliances);
      return json(result.ready ? 200 : 503, result);
    },
  };

  async function respond({ method, url = '' }: IncomingMessage): Promise<MetricsResponse> {
    const [path = ''] = url.split('?');
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
    if (route === undefined) return { status: 404, body: NOT_FOUND_TEXT };
    if (method !== 'GET' && method !== 'HEAD') return { status: 405, body: '', headers: { allow: 'GET, HEAD' } };
    return route();
  }

  return (request, response) => {
    respond(request)
      .catch((error: unknown): MetricsResponse => {
        context.log.error('metrics_request_failed', { error: messageOf(error) });
        return { status: 500, body: "Internal error; see the hub's log.\n" };
      })
      .then(({ status, type = TEXT_TYPE, body, headers = {} }) => {
        response.writeHead(status, {
          'content-type': type,
          'content-length': Buffer.byteLength(body),
          'cache-control': 'no-store',
          'x-content-type-options': 'nosniff',
          ...headers,
        });
        response.end(request.method === 'HEAD' ? undefined : body);
      });
  };
}

function json(status: number, body: object): MetricsResponse {
  return { status, type: JSON_TYPE, body: `${JSON.stringify(body)}\n` };
}
