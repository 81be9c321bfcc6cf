import { createWriteStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CredentialsAnswer } from '../../src/control/messages.ts';
import type { ApplianceStatus, HubStatus } from '../../src/core/administration.ts';
import { logFile, rememberSecrets } from '../support/logs.ts';
import type { Host, Process } from '../support/netns.ts';
import { MAIN, SHARED_CACHE } from '../support/program.ts';
import { stateFolder } from '../support/state-folder.ts';

/** A line of the hub's log. */
type LogLine = Readonly<Record<string, unknown>> & {
  readonly event: string;
  /** Seconds on CLOCK_MONOTONIC, as in the observers. */
  readonly at: number;
};

/** A hub in test mode, with nothing configured, on a host of a test's LAN. */
export interface TestModeHub extends AsyncDisposable {
  readonly process: Process;
  /** Its CA's certificate, in a file that other hosts may read. */
  readonly caFile: string;
  /** The first line of its log for an event, among those that `matches`; throws after 10 s without one. */
  logged(event: string, matches?: (line: LogLine) => boolean): Promise<LogLine>;
  /** Runs the command line on the hub's host, and gives what it prints. */
  cli(...args: string[]): Promise<string>;
  json<Result>(...args: string[]): Promise<Result>;
  status(): Promise<{ hub: HubStatus; appliances: ApplianceStatus[] }>;
  addAppliance(name: string): Promise<CredentialsAnswer>;
  /** Starts a pairing. @returns the printed link */
  beginPairing(name: string): Promise<string>;
}

/**
 * Starts `latchkey serve --test-mode` and waits until it is up.
 * @param home the user's home directory; default: an empty one, which goes away with the hub
 * @param more variables of the environment, such as keys of the configuration
 */
export async function startTestModeHub(
  host: Host,
  home?: string,
  more: Readonly<Record<string, string>> = {},
): Promise<TestModeHub> {
  if (home === undefined) return startInPassingHome(host, more);
  await using starting = new AsyncDisposableStack();
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    XDG_STATE_HOME: join(home, 'state'),
    XDG_CACHE_HOME: SHARED_CACHE,
    ...more,
  };
  const daemon = host.spawn(process.execPath, [MAIN, 'serve', '--test-mode'], { env });
  starting.defer(async () => void (await daemon.stop('SIGTERM')));
  daemon.child.stderr?.pipe(createWriteStream(logFile('test-mode-hub'), { mode: 0o600 }));

  const logged = (event: string, matches = (_line: LogLine) => true) =>
    daemon.errorLine((text) => {
      if (!text.startsWith('{')) return undefined; // a notice for people
      const line: { time: string; event: string } = JSON.parse(text);
      const age = (Date.now() - Date.parse(line.time)) / 1000;
      const entry: LogLine = { ...line, at: Number(process.hrtime.bigint()) / 1e9 - age };
      return entry.event === event && matches(entry) ? entry : undefined;
    });
  const cli = (...args: string[]) => host.run(process.execPath, [MAIN, ...args], { env });
  const json = async (...args: string[]) => JSON.parse(await cli(...args, '--json'));

  await logged('hub started');
  const caFile = join(home, 'hub-ca.pem');
  await writeFile(caFile, await cli('ca'));
  const resources = starting.move();
  return {
    process: daemon,
    caFile,
    logged,
    cli,
    json,
    status: () => json('status'),
    async addAppliance(name) {
      const credentials: CredentialsAnswer = await json(
        'appliance',
        'add',
        name,
        '--scope',
        'Monitoring RemoteControl',
      );
      rememberSecrets([credentials.client_secret]);
      return credentials;
    },
    async beginPairing(name) {
      const { authorize_url } = await json('pair', name, '--no-wait');
      return authorize_url;
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

async function startInPassingHome(host: Host, more: Readonly<Record<string, string>>): Promise<TestModeHub> {
  const folder = stateFolder();
  const hub = await startTestModeHub(host, folder.path, more).catch((error: unknown) => {
    folder[Symbol.dispose]();
    throw error;
  });
  return {
    ...hub,
    async [Symbol.asyncDispose]() {
      await hub[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

/**
 * Asks the hub for a token with curl, as an appliance on this host.
 * @param hub its `https://host:port`, and the CA to trust
 */
export async function requestToken(
  host: Host,
  hub: { readonly origin: string; readonly caFile: string },
  { client_id, client_secret }: CredentialsAnswer,
): Promise<Readonly<Record<string, unknown>>> {
  const form = ['--user', `${client_id}:${client_secret}`, '--data', 'grant_type=client_credentials'];
  const token = JSON.parse(await curl(host, ['--cacert', hub.caFile, ...form, `${hub.origin}/oauth/token`]));
  if (token.access_token !== undefined) rememberSecrets([token.access_token]);
  return token;
}

/** Runs curl on a host. */
export function curl(host: Host, args: readonly string[]): Promise<string> {
  return host.run('/usr/bin/curl', ['--silent', '--show-error', '--max-time', '5', '--noproxy', '*', ...args]);
}
