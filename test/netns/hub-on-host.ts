import { createWriteStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ControlClient, connectControlClient } from '../../src/control/client.ts';
import type { CredentialsResponse, StatusResponse } from '../../src/control/messages.ts';
import { startPairing } from '../support/hub-process.ts';
import { logFile, rememberSecrets } from '../support/logs.ts';
import type { Host, Process } from '../support/netns.ts';
import { MAIN, SHARED_CACHE } from '../support/program.ts';
import { stateFolder } from '../support/state-folder.ts';

/** A line of the hub's log. */
type LogLine = Readonly<Record<string, unknown>> & { readonly event: string };

/** A hub in test mode, without configuration, on a host of a test's LAN. */
export interface TestModeHub extends AsyncDisposable {
  readonly process: Process;
  /** Its CA certificate, in a file that other hosts may read. */
  readonly caFile: string;
  /** The first log line of an event that `matches`; throws if there is none in 10 s. */
  logged(event: string, matches?: (line: LogLine) => boolean): Promise<LogLine>;
  /** Calls the daemon over its control socket, which is a file: network namespaces do not restrict access to it. */
  ask<Result>(work: (control: ControlClient) => Promise<Result>): Promise<Result>;
  status(): Promise<StatusResponse>;
  addAppliance(name: string): Promise<CredentialsResponse>;
  /** Starts a pairing. @returns the authorize URL */
  beginPairing(name: string): Promise<URL>;
}

/**
 * Starts `latchkey serve --test-mode` and waits until it is up.
 * @param home the user's home directory; default: an empty one, which is deleted with the hub
 * @param environment more environment variables, such as keys of the configuration
 */
export async function startTestModeHub(
  host: Host,
  home?: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<TestModeHub> {
  if (home === undefined) return startInTemporaryHome(host, environment);
  await using starting = new AsyncDisposableStack();
  const state = join(home, 'state');
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    XDG_STATE_HOME: state,
    XDG_CACHE_HOME: SHARED_CACHE,
    ...environment,
  };
  const daemon = host.spawn(process.execPath, [MAIN, 'serve', '--test-mode'], { env });
  starting.defer(async () => void (await daemon.stop('SIGTERM')));
  daemon.child.stderr?.pipe(createWriteStream(logFile('test-mode-hub'), { mode: 0o600 }));

  const logged = (event: string, matches = (_line: LogLine) => true) =>
    daemon.errorLine((text) => {
      if (!text.startsWith('{')) return undefined; // text for people, not JSON
      const line: LogLine = JSON.parse(text);
      return line.event === event && matches(line) ? line : undefined;
    });
  const ask = async <Result>(work: (control: ControlClient) => Promise<Result>) => {
    await using control = await connectControlClient([join(state, 'latchkey/control.sock')]);
    return await work(control);
  };

  await logged('hub_started');
  const caFile = join(home, 'hub-ca.pem');
  await writeFile(caFile, (await ask((control) => control.request('authority'))).certificate);
  const resources = starting.move();
  return {
    process: daemon,
    caFile,
    logged,
    ask,
    status: () => ask((control) => control.request('status')),
    async addAppliance(name) {
      const credentials = await ask((control) =>
        control.request('addAppliance', { name, scope: 'Monitoring RemoteControl' }),
      );
      rememberSecrets([credentials.client_secret]);
      return credentials;
    },
    beginPairing: (name) => ask((control) => startPairing(control, name)),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

async function startInTemporaryHome(host: Host, environment: Readonly<Record<string, string>>): Promise<TestModeHub> {
  const folder = stateFolder();
  const hub = await startTestModeHub(host, folder.path, environment).catch((error: unknown) => {
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
 * Requests a token from the hub with curl, as an appliance on this host.
 * @param hub its `https://host:port`, and the CA to trust
 */
export async function requestToken(
  host: Host,
  hub: { readonly origin: string; readonly caFile: string },
  { client_id, client_secret }: CredentialsResponse,
): Promise<Readonly<Record<string, unknown>>> {
  const form = ['--user', `${client_id}:${client_secret}`, '--data', 'grant_type=client_credentials'];
  const token = JSON.parse(await runCurl(host, ['--cacert', hub.caFile, ...form, `${hub.origin}/oauth/token`]));
  if (token.access_token !== undefined) rememberSecrets([token.access_token]);
  return token;
}

/** Logs in with curl through a link, and follows the portal's redirects. @returns the last page */
export function logIn(host: Host, link: string | URL, ...args: string[]): Promise<string> {
  const form = ['username=demo', 'password=demo', 'action=login'].flatMap((field) => ['--data', field]);
  return runCurl(host, [...args, '--location', ...form, String(link)]);
}

/** The hub's warnings and errors so far. */
export function warningsOf({ output }: Process): readonly string[] {
  return output.split('\n').filter((line) => /"level":"(warn|error)"/.test(line));
}

/** Runs curl on a host. */
export function runCurl(host: Host, args: readonly string[]): Promise<string> {
  return host.run('/usr/bin/curl', ['--silent', '--show-error', '--max-time', '60', '--noproxy', '*', ...args]);
}
