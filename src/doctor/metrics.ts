import { isIP } from 'node:net';
import { request } from 'undici';
import { messageOf } from '../core/failure.ts';
import { fail, needsRoot, ok, type Said, warn } from './finding.ts';
import type { Subject } from './subject.ts';

/** How long the listener may take, in ms. */
const PATIENCE = 3000;

/** Whether metrics are told where the configuration wants them. */
export async function checkMetrics(subject: Subject): Promise<Said[]> {
  const { configuration, hub } = subject;
  if (configuration === null) return [warn('metrics could not be looked at: see to the configuration first')];
  const { metrics: listen } = configuration;
  if (listen === null) return [ok('metrics are told nowhere, by metrics.listen')];
  if (hub.kind === 'forbidden') return [needsRoot('whether metrics are told')];
  if (hub.kind !== 'running') return [ok('metrics are told while the hub runs')];
  const origin = metricsOrigin(subject);
  if (origin === null) {
    return [
      fail(
        `the hub does not have port ${listen.port} of ${listen.host} (metrics.listen) for metrics: end the program that has it, or name another port; after a change "sudo latchkey reload"`,
      ),
    ];
  }
  try {
    const { statusCode, body } = await request(`${origin}/healthz`, { signal: AbortSignal.timeout(PATIENCE) });
    await body.dump();
    if (statusCode === 200) return [ok(`${origin} tells metrics and health`)];
    return [
      fail(
        `${origin}/healthz answers HTTP ${statusCode}: another program has the port, or the hub is not well; see metrics.listen`,
      ),
    ];
  } catch (error) {
    return [
      fail(
        `${origin} does not answer (${messageOf(error)}): correct metrics.listen, or free its port, and restart the hub`,
      ),
    ];
  }
}

/** Where the running hub tells its metrics; null where it does not. */
export function metricsOrigin({ configuration, hub }: Pick<Subject, 'configuration' | 'hub'>): string | null {
  const listen = configuration?.metrics ?? null;
  const port = hub.kind === 'running' ? hub.hub.metrics_port : undefined;
  if (listen === null || port === undefined) return null;
  const any = listen.host === '0.0.0.0' || listen.host === '::';
  const host = any ? '127.0.0.1' : listen.host;
  return `http://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}
