import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { basename } from 'node:path';
import { request } from 'undici';
import { messageOf } from '../../core/failure.ts';
import { type CheckResult, configurationInvalid, fail, ok, permissionDenied } from '../check-result.ts';
import { type DoctorContext, hasValidKey } from '../context.ts';

/** How long the listener may take, in ms. */
const METRICS_TIMEOUT = 3000;

/** Whether metrics are served where the configuration wants them. */
export async function checkMetrics(context: DoctorContext): Promise<CheckResult[]> {
  const { configuration, hub } = context;
  const { metrics: listen } = configuration;
  const isServed = hub.kind === 'running' && hub.hub.metrics_port !== undefined;
  if (!hasValidKey(context, 'metrics.listen') && !isServed) return [configurationInvalid('the metrics')];
  if (listen === null) return [ok('metrics are turned off, by metrics.listen')];
  if (hub.kind === 'forbidden') return [permissionDenied('the metrics')];
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
    const { statusCode, body } = await request(`${origin}/healthz`, { signal: AbortSignal.timeout(METRICS_TIMEOUT) });
    await body.dump();
    if (statusCode === 200) return [ok(`${origin} serves metrics and health`)];
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
  const { metrics: listen } = configuration;
  const port = hub.kind === 'running' ? hub.hub.metrics_port : undefined;
  if (listen === null || port === undefined) return null;
  const any = listen.host === '0.0.0.0' || listen.host === '::';
  const host = any ? '127.0.0.1' : listen.host;
  return `http://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

/** Whether the program that notices go to is there. What it is given, and where a webhook is, may be secret. */
export async function checkHooks(context: DoctorContext): Promise<CheckResult[]> {
  if (!hasValidKey(context, 'notify')) return [configurationInvalid('the hooks')];
  const { command, webhook } = context.configuration.notify;
  if (command === null && webhook === null)
    return [ok('no hook is configured: notices are on the page and in "latchkey status"')];
  const said: CheckResult[] = [];
  if (command !== null) said.push(await checkNotifyCommand(command[0]));
  if (webhook !== null) said.push(ok(`notices go to ${new URL(webhook.reveal()).origin}`, '.webhook'));
  return said;
}

async function checkNotifyCommand(path: string): Promise<CheckResult> {
  const name = '.command';
  // One without a path is looked for in $PATH when it is run.
  if (!path.includes('/')) return ok(`notices go to the program ${path}`, name);
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => error.code ?? 'unknown');
  if (found === 'EACCES') return { ...permissionDenied(path), name };
  if (typeof found === 'string' || !found.isFile()) {
    const what = found === 'ENOENT' ? 'is not there' : 'is no file';
    return fail(`notify.command names ${path}, which ${what}: put the program there, or correct notify.command`, name);
  }
  return access(path, constants.X_OK).then(
    () => ok(`notices go to the program ${basename(path)}`, name),
    () => fail(`notify.command names ${path}, which can't be run: sudo chmod 755 ${path}`, name),
  );
}
