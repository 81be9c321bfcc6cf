import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { isIP } from 'node:net';
import { basename } from 'node:path';
import { request } from 'undici';
import { messageOf } from '../../core/failure.ts';
import { type CheckResult, fail, needsRoot, ok, withoutConfiguration } from '../check-result.ts';
import type { DoctorContext } from '../context.ts';

/** How long the listener may take, in ms. */
const TIMEOUT = 3000;

/** Whether metrics are served where the configuration wants them. */
export async function checkMetrics(context: DoctorContext): Promise<CheckResult[]> {
  const { configuration, hub } = context;
  if (configuration === null) return [withoutConfiguration('the metrics')];
  const { metrics: listen } = configuration;
  if (listen === null) return [ok('metrics are turned off, by metrics.listen')];
  if (hub.kind === 'forbidden') return [needsRoot('the metrics')];
  if (hub.kind !== 'running') return [ok('metrics are served while the hub runs')];
  const origin = metricsOrigin(context);
  if (origin === null) {
    return [
      fail(
        `the hub does not have port ${listen.port} of ${listen.host} (metrics.listen) for metrics: end the program that has it, or name another port; after a change "latchkey reload"`,
      ),
    ];
  }
  try {
    const { statusCode, body } = await request(`${origin}/healthz`, { signal: AbortSignal.timeout(TIMEOUT) });
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
export function metricsOrigin({ configuration, hub }: Pick<DoctorContext, 'configuration' | 'hub'>): string | null {
  const listen = configuration?.metrics ?? null;
  const port = hub.kind === 'running' ? hub.hub.metrics_port : undefined;
  if (listen === null || port === undefined) return null;
  const any = listen.host === '0.0.0.0' || listen.host === '::';
  const host = any ? '127.0.0.1' : listen.host;
  return `http://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

/** Whether the program that notices go to is there. What it is given, and where a webhook is, may be secret. */
export async function checkHooks({ configuration }: DoctorContext): Promise<CheckResult[]> {
  const { command, webhook } = configuration?.notify ?? { command: null, webhook: null };
  if (command === null && webhook === null)
    return [ok('no hook is configured: notices are on the page and in "latchkey status"')];
  const said: CheckResult[] = [];
  if (command !== null) said.push(await program(command[0]));
  if (webhook !== null) said.push(ok(`notices go to ${new URL(webhook.reveal()).origin}`, '.webhook'));
  return said;
}

async function program(path: string): Promise<CheckResult> {
  const name = '.command';
  // One without a path is looked for in $PATH when it is run.
  if (!path.includes('/')) return ok(`notices go to the program ${path}`, name);
  return access(path, constants.X_OK).then(
    () => ok(`notices go to the program ${basename(path)}`, name),
    (error: NodeJS.ErrnoException) =>
      fail(
        `notify.command names ${path}, which can't be run (${error.code}): correct it, or sudo chmod 755 ${path}`,
        name,
      ),
  );
}
