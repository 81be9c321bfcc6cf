// The port for metrics alone, on a real socket: which requests it accepts or refuses.
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApplianceStatus } from '../../src/core/appliances/appliance-status.ts';
import type { ConnectionStatus } from '../../src/core/connections/connection-status.ts';
import { openMetricsServer } from '../../src/hub/metrics.ts';
import { ListeningSocketPool } from '../../src/lan/listening-socket-pool.ts';
import type { OptionalServer } from '../../src/lan/optional-server.ts';
import { Counters } from '../../src/metrics/counters.ts';
import { systemTimers } from '../../src/system/clock.ts';
import { applianceStatus, connectionStatus, connectionsOf, hubStatus } from '../control/status-samples.ts';
import { logTo } from '../support/log-to.ts';
import { scrapeMetrics } from './scrape.ts';

/**
 * Sends bytes to a port of 127.0.0.1.
 * @returns what was received until the connection ended or `isEnough` was true
 */
async function sendRaw(
  port: number | null,
  bytes: string,
  isEnough: (received: string) => boolean = () => false,
): Promise<string> {
  const socket = connect(port ?? 0, '127.0.0.1');
  let received = '';
  socket.setEncoding('latin1');
  socket.write(bytes);
  for await (const chunk of socket) {
    received += chunk;
    if (isEnough(received)) break;
  }
  socket.destroy();
  return received;
}

const lines: { readonly level: string; readonly event: string; readonly fields: object | undefined }[] = [];
const log = logTo((event, fields, level) => lines.push({ level, event, fields }));

const get = (server: OptionalServer, path: string, init: RequestInit = {}) =>
  fetch(`http://127.0.0.1:${server.port}${path}`, init);

describe('the metrics listener', () => {
  let overdue = 0;
  let failing = false;
  let appliances: ApplianceStatus[] = [];
  let unused: ConnectionStatus[] = [];
  const resources = new AsyncDisposableStack();
  let listener: OptionalServer;

  beforeAll(async () => {
    const sockets = resources.use(new ListeningSocketPool());
    listener = resources.use(
      await openMetricsServer({
        host: '127.0.0.1',
        port: 0,
        sockets,
        async status() {
          if (failing) throw new Error('a reason');
          const connections = [...connectionsOf(appliances), ...unused];
          return { hub: hubStatus({ uptime: 12 }), connections, appliances, conditions: [], notices: [] };
        },
        connectionIds: () => new Map(),
        applianceIds: () => new Map(),
        portalsReached: () => new Map(),
        clockOffset: () => null,
        counters: new Counters(),
        overdue: () => overdue,
        hostNames: () => ['localhost', 'cellar.local'],
        log,
        timers: systemTimers,
      }),
    );
  });

  afterAll(() => resources.disposeAsync());

  it('the metrics listener serves the metrics in the format of Prometheus', async () => {
    const response = await get(listener, '/metrics?x=1');
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-store');
    const { value } = await scrapeMetrics(listener.port ?? undefined);
    expect(value('latchkey_build_info', { version: '1.2.3' })).toBe(1);
    expect(value('latchkey_hub_uptime_seconds')).toBe(12);
    expect(value('latchkey_clock_offset_seconds')).toBeUndefined();
  });

  it('the hub is healthy while its scheduler runs, and unhealthy if a task has been due for more than 90 s', async () => {
    const health = async () => {
      const response = await get(listener, '/healthz');
      return { status: response.status, body: await response.json() };
    };
    expect(await health()).toEqual({ status: 200, body: { healthy: true } });
    overdue = 90_000;
    expect(await health()).toMatchObject({ status: 200 });
    overdue = 90_001;
    const reason = 'the scheduler is 90 s overdue';
    expect(await health()).toEqual({ status: 503, body: { healthy: false, reason } });
    overdue = 0;
  });

  it('the metrics listener answers unknown paths, methods and errors without further details', async () => {
    for (const path of ['/', '/metrics/', '/constructor', '/%zz', '//metrics']) {
      expect((await get(listener, path)).status, path).toBe(404);
    }
    expect((await get(listener, '/metrics', { method: 'HEAD' })).status).toBe(200);
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const response = await get(listener, '/metrics', { method });
      expect([response.status, response.headers.get('allow')], method).toEqual([405, 'GET, HEAD']);
    }
    failing = true;
    for (const path of ['/metrics', '/readyz']) {
      const response = await get(listener, path);
      expect([response.status, await response.text()]).toEqual([500, "Internal error; see the hub's log.\n"]);
    }
    failing = false;
    expect((await get(listener, '/metrics')).status).toBe(200);
    expect(lines).toContainEqual({ level: 'error', event: 'metrics_request_failed', fields: { error: 'a reason' } });
  });

  it.each([
    ['evil.example', 421],
    ['localhost.evil.example:80', 421],
    ['', 421],
    ['127.0.0.1', 200],
    ['LOCALHOST:9480', 200],
    ['cellar.local:9480', 200],
  ])('the metrics listener asked as %s answers %i, so that DNS rebinding by a website fails', async (host, status) => {
    for (const path of ['/metrics', '/healthz', '/readyz']) {
      const response = await sendRaw(
        listener.port,
        `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      );
      expect(response).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
      if (status === 421) expect(response).not.toContain('latchkey_');
    }
  });

  it('the metrics listener does not wait for an announced request body', async () => {
    const head = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4294967296\r\n\r\n';
    expect(await sendRaw(listener.port, head, (response) => response.includes('healthy'))).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('the hub is ready if no appliance uses the connection that must be paired again, and its metrics show it', async () => {
    const problem = { code: 'refused', message: 'Something is wrong', since: '2031-05-05T06:07:08Z' } as const;
    const broken = { state: 'needs_pairing', expiresIn: 0, problem, loginEnds: '2031-05-05T06:07:08Z' } as const;
    unused = [connectionStatus({ name: 'netatmo', ...broken })];
    const readyz = await get(listener, '/readyz');
    expect([readyz.status, await readyz.json()]).toEqual([200, { ready: true, appliances: [] }]);
    const { value } = await scrapeMetrics(listener.port ?? undefined);
    expect(value('latchkey_connection_state', { connection: 'netatmo', state: 'needs_pairing' })).toBe(1);
    expect(value('latchkey_connections', { state: 'needs_pairing' })).toBe(1);
    expect(value('latchkey_appliances', { state: 'needs_pairing' })).toBe(0);
    expect(value('latchkey_login_ends_timestamp_seconds', { connection: 'netatmo' })).toBe(
      Date.UTC(2031, 4, 5, 6, 7, 8) / 1000,
    );
    const { loginEnds: _, users: __, ...login } = unused[0] ?? connectionStatus({ name: '' });
    const user = applianceStatus({ ...login, name: 'thermostat', connection: 'netatmo' });
    appliances = [user];
    expect((await get(listener, '/readyz')).status).toBe(503);
    [appliances, unused] = [[], []];
    expect((await scrapeMetrics(listener.port ?? undefined)).text).not.toContain('netatmo');
  });
});
