import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { basename } from 'node:path';
import { request } from 'undici';
import { messageOf } from '../../core/failure.ts';
import {
  type CheckResult,
  type CheckResults,
  configurationInvalid,
  fail,
  ok,
  permissionDenied,
} from '../check-result.ts';
import { type DoctorContext, isConfigurationKeyValid } from '../context.ts';

/** How long the listener may take, in ms. */
const METRICS_TIMEOUT = 3000;

/** Checks whether metrics are served at the configured address. */
export async function checkMetrics(context: DoctorContext): Promise<CheckResults> {
  const { configuration, hub } = context;
  const { metrics: listen } = configuration;
  const isServed = hub.kind === 'running' && hub.hub.metrics_port !== undefined;
  if (!isConfigurationKeyValid(context, 'metrics.listen') && !isServed) return configurationInvalid('the metrics');
  if (listen === null) return ok('metrics are turned off (metrics.listen = "")');
  if (hub.kind === 'forbidden') return permissionDenied('the metrics');
  if (hub.kind !== 'running') return ok('metrics are available only while the hub is running');
  const origin = metricsOrigin(context);
  if (origin === null) {
    return fail(
      `the hub can't use port ${listen.port} of ${listen.host} for metrics (metrics.listen): stop the program that uses it, or set another port and run "latchkey reload"`,
    );
  }
  try {
    const { statusCode, body } = await request(`${origin}/healthz`, { signal: AbortSignal.timeout(METRICS_TIMEOUT) });
    await body.dump();
    if (statusCode === 200) return ok(`${origin} serves metrics and health`);
    return fail(
      `${origin}/healthz responds with HTTP ${statusCode}: another program uses the port (set another metrics.listen), or the hub has a problem ("latchkey status" shows it)`,
    );
  } catch (error) {
    return fail(
      `${origin} does not respond (${messageOf(error)}): correct metrics.listen, or free its port, and restart the hub`,
    );
  }
}

/** The origin at which the running hub serves metrics; null if it does not. */
export function metricsOrigin({ configuration, hub }: Pick<DoctorContext, 'configuration' | 'hub'>): string | null {
  const { metrics: listen } = configuration;
  const port = hub.kind === 'running' ? hub.hub.metrics_port : undefined;
  if (listen === null || port === undefined) return null;
  const any = listen.host === '0.0.0.0' || listen.host === '::';
  const host = any ? '127.0.0.1' : listen.host;
  return `http://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

/**
 * Checks whether the program for notices exists. Its arguments and the path of a webhook are not shown: they may be
 * secret.
 */
export async function checkHooks(context: DoctorContext): Promise<CheckResults> {
  if (!isConfigurationKeyValid(context, 'notify')) return configurationInvalid('the hooks');
  const { command, webhook } = context.configuration.notify;
  if (command === null && webhook === null)
    return ok('no hook is configured: notices are shown only on the page and in "latchkey status"');
  const results: CheckResult[] = [];
  if (command !== null) results.push(await checkNotifyCommand(command[0]));
  if (webhook !== null) results.push(ok(`notices are sent to ${new URL(webhook.reveal()).origin}`, '.webhook'));
  return results;
}

async function checkNotifyCommand(path: string): Promise<CheckResult> {
  const name = '.command';
  // A name without a slash is looked up in $PATH when the program is run.
  if (!path.includes('/')) return ok(`notices are passed to the program ${path}`, name);
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => error.code ?? 'unknown');
  if (found === 'EACCES') return { ...permissionDenied(path), name };
  if (typeof found === 'string' || !found.isFile()) {
    const problem = found === 'ENOENT' ? 'does not exist' : 'is not a file';
    return fail(`the program ${path} ${problem}: put it there, or correct notify.command`, name);
  }
  return access(path, constants.X_OK).then(
    () => ok(`notices are passed to the program ${basename(path)}`, name),
    () => fail(`the program ${path} of notify.command can't be run: sudo chmod 755 ${path}`, name),
  );
}
