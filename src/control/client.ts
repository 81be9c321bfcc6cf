import { Client, type Dispatcher } from 'undici';
import type {
  ApplianceStatus,
  AuthorityReport,
  Backup,
  HubStatus,
  InviteRequest,
  ReloadOutcome,
  RestoreReport,
  StoreKeyRotation,
} from '../core/administration.ts';
import { Failure } from '../core/failure.ts';
import type { HistoryEntry } from '../core/history.ts';
import type { HookTrial, Notice } from '../core/notice.ts';
import type { PairingReport } from '../core/pairing-report.ts';
import type { Round } from '../core/round.ts';
import { parseAnswer, parseFailure, parseReports } from './answers.ts';
import { findHub } from './find-hub.ts';
import type {
  CredentialsAnswer,
  InviteAnswer,
  LabelAnswer,
  PairingStarted,
  RegistrationAnswer,
  ReloadStarted,
  SetupCodeAnswer,
  TokenAnswer,
} from './messages.ts';

/** The running hub, as the command line speaks to it. Every call rejects with the hub's own Failure where it refuses. */
export interface ControlClient extends AsyncDisposable {
  status(): Promise<{ hub: HubStatus; appliances: ApplianceStatus[]; notices: Notice[] }>;
  testNotices(): Promise<HookTrial[]>;
  authority(): Promise<AuthorityReport>;
  /** @param keep for how many seconds appliances that trust no other than the old CA are served */
  rotateAuthority(keep: number): Promise<AuthorityReport>;
  keepOldAuthority(keep: number): Promise<AuthorityReport>;
  addAppliance(name: string, scope: string | null, portal: string | null): Promise<CredentialsAnswer>;
  removeAppliance(name: string): Promise<void>;
  /** @param replaceKeys whether a secret may take the place of the appliance's own keys */
  rotateSecret(name: string, replaceKeys: boolean): Promise<CredentialsAnswer>;
  /** @param code its comparison code; null where that is not to be checked */
  approveAppliance(name: string, code: string | null): Promise<ApplianceStatus>;
  invite(request: InviteRequest): Promise<InviteAnswer>;
  /** Holds registration open for so many seconds; 0 closes it. */
  openRegistration(seconds: number): Promise<RegistrationAnswer>;
  /** Starts a pairing. @returns its id */
  pair(name: string): Promise<string>;
  /**
   * A pairing's reports, until it has ended. Aborting the signal ends it without an error.
   * @throws Failure `hub_stopping` where the hub goes in between
   */
  followPairing(id: string, signal: AbortSignal): AsyncIterable<PairingReport>;
  /** Begins a round of pairings, or goes on with the one that is under way. */
  pairAll(): Promise<Round>;
  /** Begins the next pairing of a round, unless one of it is open. @param id of the round */
  nextPairing(id: string): Promise<Round>;
  label(name: string): Promise<LabelAnswer>;
  unpair(name: string): Promise<void>;
  token(name: string): Promise<TokenAnswer>;
  /** The line that last had something added first. */
  history(name: string): Promise<HistoryEntry[]>;
  refresh(name: string): Promise<ApplianceStatus>;
  setupCode(): Promise<SetupCodeAnswer>;
  /** Has the hub make another setup code, and sign everybody out. */
  rotateSetupCode(): Promise<SetupCodeAnswer>;
  /** Has the hub make another store key, and seal everything anew. */
  rotateStoreKey(): Promise<StoreKeyRotation>;
  backUp(passphrase: string): Promise<Backup>;
  restore(copy: string, passphrase: string): Promise<RestoreReport>;
  /** Has the hub take its changed configuration over. @returns the reload's id, by which its outcome is asked for */
  reload(): Promise<string>;
  reloadOutcome(id: string): Promise<ReloadOutcome>;
}

/**
 * Connects to the running hub.
 * @param paths where its socket may be; the first one that somebody listens on is taken
 * @throws Failure `hub_not_running`, or `not_allowed` where this user may not speak to it
 */
export async function connectControl(paths: readonly string[]): Promise<ControlClient> {
  const socketPath = await findHub(paths);
  // A refresh may take as long as the portal makes it; a pairing's events may be a quarter of an hour apart.
  const client = new Client('http://hub', { socketPath, headersTimeout: 0, bodyTimeout: 0 });

  async function call<T>(method: Dispatcher.HttpMethod, path: string, body?: unknown): Promise<T> {
    const { statusCode, text } = await exchange(method, path, body);
    if (statusCode < 200 || statusCode > 299) throw parseFailure(statusCode, text);
    return parseAnswer<T>(text);
  }

  async function exchange(method: Dispatcher.HttpMethod, path: string, body?: unknown) {
    try {
      const answer = await client.request({
        method,
        path,
        ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      });
      return { statusCode: answer.statusCode, text: await answer.body.text() };
    } catch (error) {
      throw hubWent(error);
    }
  }

  return {
    status: () => call('GET', '/v1/status'),
    testNotices: () => call('POST', '/v1/notices/test'),
    authority: () => call('GET', '/v1/ca'),
    rotateAuthority: (keep) => call('POST', '/v1/ca', { keep }),
    keepOldAuthority: (keep) => call('PUT', '/v1/ca/old', { keep }),
    addAppliance: (name, scope, portal) => call('POST', '/v1/appliances', { name, scope, portal }),
    removeAppliance: (name) => call('DELETE', appliance(name)),
    rotateSecret: (name, replaceKeys) => call('POST', `${appliance(name)}/secret`, { replace_keys: replaceKeys }),
    approveAppliance: (name, code) => call('POST', `${appliance(name)}/approval`, { code }),
    invite: (request) => call('POST', '/v1/invites', request),
    openRegistration: (seconds) => call('PUT', '/v1/registration', { open_for: seconds }),
    pair: async (name) => (await call<PairingStarted>('POST', `${appliance(name)}/pairings`)).pairing,
    pairAll: () => call('POST', '/v1/rounds'),
    nextPairing: (id) => call('POST', `/v1/rounds/${encodeURIComponent(id)}/next`),
    label: (name) => call('GET', `${appliance(name)}/label`),
    unpair: (name) => call('DELETE', `${appliance(name)}/grant`),
    history: (name) => call('GET', `${appliance(name)}/history`),
    token: (name) => call('GET', `${appliance(name)}/token`),
    refresh: (name) => call('POST', `${appliance(name)}/refresh`),
    setupCode: () => call('GET', '/v1/setup-code'),
    rotateSetupCode: () => call('POST', '/v1/setup-code'),
    rotateStoreKey: () => call('POST', '/v1/store-key'),
    backUp: (passphrase) => call('POST', '/v1/backup', { passphrase }),
    restore: (copy, passphrase) => call('POST', '/v1/restore', { copy, passphrase }),
    reload: async () => (await call<ReloadStarted>('POST', '/v1/reload')).reload,
    reloadOutcome: (id) => call('GET', `/v1/reloads/${encodeURIComponent(id)}`),
    async *followPairing(id, signal) {
      let ended = false;
      try {
        const path = `/v1/pairings/${encodeURIComponent(id)}/events`;
        const { statusCode, body } = await client.request({ method: 'GET', path, signal });
        if (statusCode !== 200) throw parseFailure(statusCode, await body.text());
        for await (const report of parseReports(body)) {
          ended = report.event === 'paired' || report.event === 'failed';
          yield report;
        }
      } catch (error) {
        if (signal.aborted) return;
        throw error instanceof Failure ? error : hubWent(error);
      }
      if (!ended && !signal.aborted) throw hubWent();
    },
    [Symbol.asyncDispose]: () => client.destroy(),
  };
}

function appliance(name: string): string {
  return `/v1/appliances/${encodeURIComponent(name)}`;
}

function hubWent(cause?: unknown): Failure {
  const message =
    'the hub went away before it had answered; when it runs again, "latchkey status" shows how things stand';
  return new Failure('hub_stopping', message, { cause });
}
