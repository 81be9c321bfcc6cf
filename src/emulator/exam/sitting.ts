import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemTimers } from '../../system/clock.ts';
import { type Emulator, startEmulator } from '../emulator.ts';
import type { RequestFault } from '../faults/kinds.ts';
import { type Visit, visit } from './browser.ts';
import { ClientProcess } from './client-process.ts';
import { fail } from './judgement.ts';
import {
  type Flow,
  freePort,
  mintRefreshToken,
  programEnvironment,
  requestToken,
  type Setup,
  TOKEN_LIFETIME,
} from './setup.ts';
import { isGranted, isRefresh, Wire, type WireRequest } from './wire.ts';

/** Seconds after which a client that does nothing hangs, on a machine that is not slow. */
const DEADLINE = 20;
/** Seconds without a request after which a client that is not expected to do more has stopped, likewise. */
const QUIET = 6;
/** The file of the CA in the folder of a sitting. */
const CA_FILE = 'ca.pem';
/** Calls with a dead token after which a client does not come back to life. */
const MAX_DEAD_CALLS = 12;

/** The names of requests that a server refuses if they are wrong, by their endpoint, and the errors that do not say so. */
const REFUSABLE: Readonly<Record<string, string>> = {
  token: 'token',
  device_authorization: 'device authorization',
  par: 'pushed authorization',
  register: 'registration',
};
const GOES_ON = ['authorization_pending', 'slow_down'];

/** A fault of the token endpoint, without what it applies to. */
export type TokenFault = RequestFault extends infer Fault
  ? Fault extends unknown
    ? Omit<Fault, 'endpoint'>
    : never
  : never;

/** What a sitting needs of the exam. */
export interface SittingContext {
  readonly command: readonly string[];
  /** A folder for its files, which need not exist. */
  readonly folder: string;
  /** Whether the server speaks HTTPS, with a private CA. */
  readonly tls: boolean;
  /** The client's redirect URI, but for its port. */
  readonly redirectUri: string;
  /** Ends the exam. */
  readonly signal: AbortSignal;
  /** Milliseconds that programs get to stop. */
  readonly stopTimeout: () => number;
  /** How much longer than on an idle machine everything takes; at least 1. */
  readonly slowness: number;
}

/** What is known when a sitting begins. */
interface KnownParts {
  readonly emulator: Emulator;
  readonly wire: Wire;
  readonly redirectUri: string;
  readonly refreshToken: string;
  readonly flow: Flow;
  readonly context: SittingContext;
  readonly setup: Setup;
  readonly changes: Changes;
}

/** One client with an emulator of its own, in one situation. */
export class Sitting implements AsyncDisposable {
  readonly emulator: Emulator;
  readonly wire: Wire;
  readonly redirectUri: string;
  /** The refresh token that the client is given; empty if it must log in. */
  readonly refreshToken: string;
  /** The folder of the client's state. */
  readonly stateFolder: string;
  /** The authorization URLs that the client printed. */
  readonly authorizeUrls: string[] = [];
  readonly clients: ClientProcess[] = [];
  /** The positions in the list of requests at which it printed them. */
  readonly #logins: number[] = [];
  readonly #flow: Flow;
  readonly #context: SittingContext;
  readonly #setup: Setup;
  readonly #changes: Changes;

  private constructor(known: KnownParts) {
    this.emulator = known.emulator;
    this.wire = known.wire;
    this.redirectUri = known.redirectUri;
    this.refreshToken = known.refreshToken;
    this.stateFolder = join(known.context.folder, 'state');
    this.#flow = known.flow;
    this.#context = known.context;
    this.#setup = known.setup;
    this.#changes = known.changes;
  }

  /** Starts the emulator and the client. */
  static async begin(setup: Setup, flow: Flow, context: SittingContext): Promise<Sitting> {
    const changes = new Changes();
    let sitting: Sitting | undefined;
    const wire = new Wire(() => {
      changes.emit();
      if (sitting !== undefined) sitting.#decideDevices();
    });
    const redirectUri = Object.assign(new URL(context.redirectUri), { port: String(await freePort()) }).href;
    const client = setup.client ?? { id: 'exam-client', ...(flow !== 'mcp' && { secret: 'exam-secret' }) };
    const { clientAuthentication, ...settings } = setup.settings ?? {};
    await mkdir(join(context.folder, 'state'), { recursive: true });
    const emulator = await startEmulator({
      tls: context.tls,
      caFile: context.tls ? join(context.folder, CA_FILE) : undefined,
      // Only one situation is about that mistake.
      twoAuthenticationMethods: true,
      tokenLifetime: Math.round(TOKEN_LIFETIME * Math.min(context.slowness, 3)),
      ...settings,
      clients: [{ ...client, redirectUris: [redirectUri] }],
      showSecrets: true,
      faults: setup.faults,
      intercept: wire.interceptor,
    });
    const refreshToken = flow === 'refresh' ? await mintRefreshToken(emulator, redirectUri) : '';
    if (clientAuthentication !== undefined) emulator.change({ clientAuthentication });
    sitting = new Sitting({ emulator, wire, redirectUri, refreshToken, flow, context, setup, changes });
    sitting.start();
    return sitting;
  }

  /** The program that was started last. */
  get client(): ClientProcess {
    const last = this.clients.at(-1);
    if (last === undefined) throw new Error('no client was started');
    return last;
  }

  /** The refreshes from a position in the list of requests on. */
  refreshes(since = 0): WireRequest[] {
    return this.wire.requests.slice(since).filter(isRefresh);
  }

  /** The calls of the API from a position on. */
  calls(since = 0): WireRequest[] {
    return this.wire.requests.slice(since).filter(({ logged }) => logged.endpoint === 'whoami');
  }

  /** The requests to an endpoint from a position on. */
  to(endpoint: string, since = 0): WireRequest[] {
    return this.wire.requests.slice(since).filter(({ logged }) => logged.endpoint === endpoint);
  }

  /** The position of the next request. */
  get mark(): number {
    return this.wire.requests.length;
  }

  /**
   * Starts the program, as a supervisor would after its end, or once more.
   * @param query added to the address of the API, to tell programs apart
   */
  start(query = ''): ClientProcess {
    const environment = {
      ...programEnvironment(this.emulator, this.#flow, this.#context.tls ? join(this.#context.folder, CA_FILE) : null),
      OAUTH_REFRESH_TOKEN: this.refreshToken || undefined,
      OAUTH_SCOPE: this.#setup.scope,
      OAUTH_REDIRECT_URI: this.redirectUri,
      API_URL: `${this.emulator.baseUrl}/api/whoami${query}`,
      API_CONCURRENCY: '1',
      STATE_DIR: this.stateFolder,
      ...this.extraEnvironment,
    };
    const client = new ClientProcess(this.#context.command, environment, {
      onLine: (line) => this.#readLine(line),
      onChange: () => this.#changes.emit(),
    });
    this.clients.push(client);
    return client;
  }

  /** Further variables for programs that are started from now on. */
  extraEnvironment: Readonly<Record<string, string>> = {};

  /** Ends the program as a supervisor does. */
  async stop(): Promise<void> {
    await this.client.stop(this.#context.stopTimeout());
  }

  /** Ends the program as a supervisor does, and starts it again. */
  async restart(): Promise<void> {
    await this.stop();
    this.start();
  }

  /** Adds a fault to the next refresh. @returns that refresh, as soon as it has arrived */
  async faultNextRefresh(fault: TokenFault): Promise<WireRequest> {
    const since = this.mark;
    this.emulator.addFault({ ...fault, endpoint: 'token', grantType: 'refresh_token' } as RequestFault);
    return this.until('a refresh', () => {
      this.#failIfDead(since, 'refresh');
      return this.refreshes(since)[0];
    });
  }

  /** Sends a refresh of the client once more, as a thief would, with its secret. */
  async replay(form: Readonly<Record<string, string>>): Promise<void> {
    const { clientId, clientSecret } = this.emulator;
    const credentials = { client_id: clientId, client_secret: clientSecret };
    await requestToken(this.emulator, new URLSearchParams({ ...form, ...credentials }));
  }

  /** Has the API refuse all access tokens issued so far, before their time. */
  refuseAccessTokens(): void {
    for (const { id } of this.emulator.grants()) this.emulator.revoke(id, 'access_tokens');
  }

  /** Whether the API has refused many calls from a position on, and the client did not refresh. */
  ignoresRefusals(since: number): boolean {
    const refused = this.calls(since).filter(({ logged }) => logged.status === 401);
    return refused.length >= MAX_DEAD_CALLS && this.refreshes(since).length === 0;
  }

  /** The authorization URLs that the client printed from a position in the list of requests on. */
  loginsSince(since: number): number {
    return this.#logins.filter((at) => at >= since).length;
  }

  /** What the server said of the client's newest request for tokens or a device code, if it refused it; otherwise null. */
  get refusal(): string | null {
    const last = this.wire.requests.findLast(({ logged }) => logged.endpoint in REFUSABLE)?.logged;
    const { error, error_description: description } = last?.answer ?? {};
    const isRefused = last?.fault === undefined && error !== undefined && !GOES_ON.includes(String(error));
    const name = REFUSABLE[last?.endpoint ?? ''];
    return isRefused ? `the ${name} request was refused: ${error}, ${description}` : null;
  }

  /** Waits until the client has called the API with a valid token. @param since a position in the list of requests */
  async working(since = 0): Promise<WireRequest> {
    return this.until('a call of the API with a valid token', () => {
      this.#failIfDead(since, 'come back');
      return this.calls(since).find(isGranted);
    });
  }

  /** Waits until the client has refreshed and used the new access token. @returns the refresh */
  async recovered(since: number): Promise<WireRequest> {
    return this.until('a refresh and a call with the new token', () => {
      this.#failIfDead(since, 'refresh again');
      const at = this.wire.requests.findIndex((one, index) => index >= since && isRefresh(one) && isGranted(one));
      return at !== -1 && this.calls(at).some(isGranted) ? this.wire.requests[at] : null;
    });
  }

  /** Waits for a number of granted refreshes from a position on. */
  async refreshed(count: number, since = 0): Promise<WireRequest[]> {
    return this.until(`${count} refreshes`, () => {
      this.#failIfDead(since, 'refresh');
      const granted = this.refreshes(since).filter(isGranted);
      return granted.length >= count ? granted : null;
    });
  }

  #failIfDead(since: number, what: string): void {
    // Some clients do not begin with the refresh token that they are given.
    const worked = this.wire.requests.findIndex((one) => one.logged.endpoint === 'whoami' && isGranted(one));
    const later = Math.max(since, worked);
    const isNew = this.loginsSince(later) > 0 || this.to('device_authorization', later).length > 0;
    if (isNew && worked !== -1 && this.refreshToken !== '') fail('the client asked for a new login');
    const calls = this.calls(since);
    const dead = calls
      .slice(calls.findLastIndex(isGranted) + 1)
      .filter(({ logged }) => logged.status === 401 || logged.status === 400);
    const last = this.wire.requests.findLastIndex(isRefresh);
    if (dead.length < MAX_DEAD_CALLS || this.calls(last).length < MAX_DEAD_CALLS) return;
    fail(`the client called the API ${dead.length} times with an access token that is not valid, and did not ${what}`);
  }

  /**
   * Waits until `find` finds something. It is asked after each request, response, line and end of a program.
   * @param what it is, for the report
   * @throws Judgement if the program ends or hangs before
   */
  async until<Found>(
    what: string,
    find: () => Found | null | undefined | false,
    { seconds = Math.round(DEADLINE * this.#context.slowness), mayEnd = false } = {},
  ): Promise<Found> {
    const outcome = await this.#wait(find, seconds, () => (mayEnd ? false : this.client.ended !== null));
    if ('found' in outcome) return outcome.found;
    const why = this.refusal === null ? '' : `: ${this.refusal}`;
    if (outcome.why === 'ended') return fail(`the program ${this.client.endText} before ${what}${why}`);
    return fail(`the exam waited ${seconds} s for ${what} in vain${why}`);
  }

  /**
   * Waits until `find` finds something, the program has ended, or the client has sent some more requests, or none for some
   * seconds: for what a right client never does, and what shows that it does not.
   * @param events as many requests
   * @returns null if it was not found
   */
  async unlessStopped<Found>(find: () => Found | null | undefined | false, events = 10): Promise<Found | null> {
    const end = this.mark + events;
    for (;;) {
      const before = this.mark;
      // While it waits for a response, fewer than its timeouts.
      const quiet = this.wire.isHolding ? QUIET : QUIET * this.#context.slowness;
      const outcome = await this.#wait(find, quiet, () => this.client.ended !== null || this.mark > before);
      if ('found' in outcome) return outcome.found;
      if (outcome.why === 'deadline' || this.client.ended !== null || this.mark >= end) return null;
    }
  }

  async #wait<Found>(
    find: () => Found | null | undefined | false,
    seconds: number,
    isEnded: () => boolean,
  ): Promise<{ readonly found: Found } | { readonly why: 'ended' | 'deadline' }> {
    const over = new AbortController();
    let isLate = false;
    void systemTimers.sleep(1000 * seconds, over.signal).then(() => {
      isLate = !over.signal.aborted;
      this.#changes.emit();
    });
    const onAbort = () => this.#changes.emit();
    this.#context.signal.addEventListener('abort', onAbort);
    try {
      for (;;) {
        this.#context.signal.throwIfAborted();
        if (this.wire.isFlooded) fail(`the client sent ${this.mark} requests without a pause`);
        const found = find();
        if (found !== null && found !== undefined && found !== false) return { found };
        if (isEnded()) return { why: 'ended' };
        if (isLate) return { why: 'deadline' };
        await this.#changes.next();
      }
    } finally {
      over.abort();
      this.#context.signal.removeEventListener('abort', onAbort);
    }
  }

  /** Logs the user in at an authorization URL, or refuses. @returns where the browser is redirected to */
  async login(authorizeUrl: string, deny = false): Promise<URL> {
    try {
      const { location } = await this.emulator.login({ authorizeUrl, user: 'demo', deny });
      return new URL(location);
    } catch (error) {
      return fail(error instanceof Error ? `the authorization server rejects the URL: ${error.message}` : 'a bad URL');
    }
  }

  /** Opens an address of the client in the user's browser. @param isPatient whether the client may not listen yet */
  async visit(url: URL, { isPatient = true } = {}): Promise<Visit> {
    if (url.origin !== new URL(this.redirectUri).origin) fail(`the browser is sent to ${url.origin}${url.pathname}`);
    const { signal } = this.#context;
    return visit(url, { isExpected: () => isPatient && this.client.ended === null, signal });
  }

  /** The first authorization URL that the client printed from a position in their list on. */
  async authorizeUrl(since = 0): Promise<URL> {
    const text = await this.until('an authorization URL on standard output', () => this.authorizeUrls[since]);
    return new URL(text);
  }

  #readLine(line: string): void {
    const { frontendUrl } = this.emulator;
    const url = line.match(/https?:\/\/\S+/g)?.find((one) => one.startsWith(`${frontendUrl}/oauth2/authorize?`));
    if (url === undefined) return;
    this.authorizeUrls.push(url);
    this.#logins.push(this.mark);
    this.#changes.emit();
    if (this.#setup.ownLogin !== true) {
      void this.login(url)
        .then(
          (location) => this.visit(location),
          () => undefined,
        )
        .catch(() => undefined);
    }
  }

  /** Allows or refuses the access of the device whose authorization response this is. */
  async decideDevice({ logged }: WireRequest, deny = false): Promise<void> {
    await this.emulator.approveDevice({ userCode: String(logged.answer['user_code']), user: 'demo', deny });
  }

  /** Allows the access of devices whose user logs in. */
  #decideDevices(): void {
    if (this.#setup.ownLogin === true) return;
    for (const { user_code: userCode } of this.emulator.devices()) {
      void this.emulator.approveDevice({ userCode, user: 'demo' }).catch(() => undefined);
    }
  }

  /** Makes a text safe for the report: without the secrets that the emulator has issued. */
  mask(text: string): string {
    const secrets = [...this.emulator.secretsIssued(), this.emulator.clientSecret].filter((one) => one.length > 3);
    return secrets.reduce((masked, secret) => masked.replaceAll(secret, '…'), text);
  }

  /** Writes what the programs printed and which requests they sent to two files. @param path of both, without its end */
  async writeLog(path: string): Promise<void> {
    const printed = this.clients.map((client) => `${client.output}\n(the program ${client.endText})\n`);
    const requests = this.wire.requests.map(
      ({ logged }, index) => `${JSON.stringify({ ...logged, number: index + 1 })}\n`,
    );
    const options = { mode: 0o600 };
    await writeFile(`${path}.output.txt`, printed.join(''), options);
    await writeFile(`${path}.requests.jsonl`, requests.join(''), options);
  }

  /** Stops all programs and the emulator. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.clients.map((client) => client.stop(this.#context.stopTimeout())));
    await this.emulator.close();
  }
}

/** Lets one wait for the next of some changes. */
class Changes {
  #next = Promise.withResolvers<void>();

  emit(): void {
    this.#next.resolve();
    this.#next = Promise.withResolvers<void>();
  }

  next(): Promise<void> {
    return this.#next.promise;
  }
}
