import type { IncomingMessage, ServerResponse } from 'node:http';
import { MAX_TIMER_DELAY } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import { isOwnHost } from '../system/http/host-check.ts';
import { Exposition, type ExpositionContext } from './exposition.ts';
import { readiness } from './readiness.ts';

/** What is answered from. */
export interface EndpointsContext extends ExpositionContext {
  /** For how long the next thing that was planned has been due, in ms on the boot clock. */
  overdue(): number;
  /** The DNS names that the hub answers to, in lower case, those of loopback among them. */
  hostNames(): readonly string[];
  readonly log: Log;
}

interface MetricsResponse {
  readonly status: number;
  readonly type?: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What is due for longer was not run: as for systemd's watchdog. In ms on the boot clock. */
const MAX_OVERDUE = MAX_TIMER_DELAY + 30_000;

const TEXT_TYPE = 'text/plain; charset=utf-8';
const JSON_TYPE = 'application/json';
const NOT_FOUND_TEXT = 'Not found. The paths are /metrics, /healthz and /readyz.\n';

/** Answers Prometheus, and programs that supervise the daemon. */
export function createEndpointHandler(
  context: EndpointsContext,
): (request: IncomingMessage, response: ServerResponse) => void {
  const exposition = new Exposition(context);

  const places: Readonly<Record<string, () => Promise<MetricsResponse>>> = {
    async '/metrics'() {
      return { status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', body: await exposition.render() };
    },
    async '/healthz'() {
      const overdue = context.overdue();
      if (overdue <= MAX_OVERDUE) return json(200, { healthy: true });
      const reason = `the scheduler has not run what was due ${Math.round(overdue / 1000)} s ago`;
      return json(503, { healthy: false, reason });
    },
    async '/readyz'() {
      const { appliances } = await context.status();
      const told = readiness(appliances);
      return json(told.ready ? 200 : 503, told);
    },
  };

  async function answer({ method, url = '', headers, rawHeaders }: IncomingMessage): Promise<MetricsResponse> {
    // RFC 9112, 3.2: one Host, and no other address that would win over it.
    const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
    if (hosts.length > 1 || !url.startsWith('/')) return rejection(400, 'Invalid request.\n');
    if (!isOwnHost(headers.host, context.hostNames())) {
      return rejection(421, 'The Host header is not a name or an address of this Latchkey hub.\n');
    }
    const [path = ''] = url.split('?');
    const place = Object.hasOwn(places, path) ? places[path] : undefined;
    if (place === undefined) return { status: 404, body: NOT_FOUND_TEXT };
    if (method !== 'GET' && method !== 'HEAD') return { status: 405, body: '', headers: { allow: 'GET, HEAD' } };
    return place();
  }

  return (request, response) => {
    // One of many that came at once, on a connection that was cut off for it.
    if (request.socket.destroyed) return;
    answer(request)
      .catch((error: unknown): MetricsResponse => {
        context.log.error('metrics_request_failed', { error: messageOf(error) });
        return { status: 500, body: "Internal error; see the hub's log.\n" };
      })
      .then(({ status, type = TEXT_TYPE, body, headers = {} }) => {
        const bytes = Buffer.from(body);
        response.writeHead(status, {
          'content-type': type,
          'content-length': bytes.length,
          'cache-control': 'no-store',
          'x-content-type-options': 'nosniff',
          ...headers,
        });
        response.end(request.method === 'HEAD' ? undefined : bytes);
      });
  };
}

function json(status: number, body: object): MetricsResponse {
  return { status, type: JSON_TYPE, body: `${JSON.stringify(body)}\n` };
}

/** Refuses, and closes the connection. */
function rejection(status: number, body: string): MetricsResponse {
  return { status, body, headers: { connection: 'close' } };
}
