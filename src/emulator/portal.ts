import { systemRandom } from '../system/random.ts';
import type { LoggedRequest } from './http/logged-request.ts';
import { AuthorizationCodes } from './oauth/authorization-codes.ts';
import { BearerTokens } from './oauth/bearer-tokens.ts';
import { BrowserLogins } from './oauth/browser-logins.ts';
import { ClientAssertions } from './oauth/client-assertions.ts';
import { ClientAudit } from './oauth/client-audit.ts';
import { DeviceLogins } from './oauth/device-logins.ts';
import { DpopProofs } from './oauth/dpop-proofs.ts';
import { GrantTokens } from './oauth/grant-tokens.ts';
import { HelperFlows, HelperStates } from './oauth/helper-flows.ts';
import { IssuedGrants } from './oauth/issued-grants.ts';
import { IssuedSecrets } from './oauth/issued-secrets.ts';
import { SigningKey } from './oauth/jwt.ts';
import { PushedRequests } from './oauth/pushed-requests.ts';
import type { Client } from './settings/client-registry.ts';
import { type EffectiveSettings, RuntimeSettings } from './settings/effective-settings.ts';
import type { StateFile } from './state-file.ts';
import { VirtualClock } from './virtual-clock.ts';

/** The part of the emulator's state that changed. */
type ChangeTopic = 'settings' | 'faults' | 'clock' | 'logins' | 'devices' | 'grants' | 'requests';

/** A request that was answered or whose response was lost, or a change of the state. */
type EmulatorEvent =
  | { readonly event: 'request'; readonly data: LoggedRequest }
  | { readonly event: 'change'; readonly data: { readonly what: ChangeTopic } };

/** Maximum number of listeners. */
const MAX_LISTENERS = 32;

/** Notifies listeners of requests and of changes. */
class ChangeEmitter {
  readonly #listeners = new Set<(event: EmulatorEvent) => void>();

  /** Notifies listeners that a part of the state changed, so that they read it again. */
  emitChange(what: ChangeTopic): void {
    this.#emit({ event: 'change', data: { what } });
  }

  /** Notifies listeners of a request that was answered or whose response was lost. */
  emitRequest(data: LoggedRequest): void {
    this.#emit({ event: 'request', data });
  }

  /**
   * Calls `listener` for every later event; it must not throw.
   * @returns a function that unsubscribes, or null if there are too many listeners
   */
  subscribe(listener: (event: EmulatorEvent) => void): (() => void) | null {
    if (this.#listeners.size >= MAX_LISTENERS) return null;
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  #emit(event: EmulatorEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

/** The addresses of both origins, without a trailing slash. They are empty until both origins listen. */
export interface EmulatorOrigins {
  /** `base_url` in docs/portal.md. */
  readonly base: string;
  /** `frontend_url` in docs/portal.md. */
  readonly frontend: string;
}

/** The portal's state, shared by the endpoints of both origins. */
export interface EmulatedPortal {
  /** The current settings. A request keeps the ones that it began with. */
  readonly settings: EffectiveSettings;
  readonly runtimeSettings: RuntimeSettings;
  readonly clock: VirtualClock;
  /** The emulator's time, in milliseconds since 1970. */
  readonly now: () => number;
  readonly origins: () => EmulatorOrigins;
  /** The name of the issuer that a request is for; null for the default one. */
  readonly issuerName: string | null;
  /** The identifier of that issuer. */
  readonly issuer: () => string;
  readonly changes: ChangeEmitter;
  readonly issuedSecrets: IssuedSecrets;
  readonly audit: ClientAudit;
  readonly states: HelperStates;
  readonly helperFlows: HelperFlows;
  readonly codes: AuthorizationCodes;
  readonly pushedRequests: PushedRequests;
  readonly deviceLogins: DeviceLogins;
  readonly clientAssertions: ClientAssertions;
  readonly dpopProofs: DpopProofs;
  readonly signingKey: SigningKey;
  readonly grants: IssuedGrants;
  readonly browserLogins: BrowserLogins;
  /** Writes the state to the state file, if there is one. Must be called before a response reports a change. */
  readonly save: () => void;
}

/** Creates a portal with the state of its file, or with an empty one. */
export function createPortal(
  settings: EffectiveSettings,
  origins: () => EmulatorOrigins,
  file: StateFile | null,
): EmulatedPortal {
  const saved = file?.state ?? {};
  const changes = new ChangeEmitter();
  const clock = new VirtualClock(settings.clock, saved.clockOffset ?? 0, () => changes.emitChange('clock'));
  const now = () => clock.now().wall;
  const machineTime = () => settings.clock.now().wall;
  const tokens = new BearerTokens(saved.tokenKey ?? systemRandom.token(32));
  const issuedSecrets = new IssuedSecrets();
  const audit = new ClientAudit(saved);
  const runtimeSettings = new RuntimeSettings(settings, () => changes.emitChange('settings'));
  settings.clients.restore(saved.registered ?? []);
  const states = new HelperStates(saved.stateKey, now, issuedSecrets);
  const helperFlows = new HelperFlows(saved.runs ?? [], () => changes.emitChange('logins'));
  const codes = new AuthorizationCodes(saved.codes ?? [], now, issuedSecrets);
  const deviceLogins = new DeviceLogins(saved.devices ?? [], now, issuedSecrets, () => changes.emitChange('devices'));
  const signingKey = new SigningKey(saved.signingKey ?? null);
  const grants = new IssuedGrants(saved.grants ?? [], {
    tokens,
    now,
    grantTokens: new GrantTokens({
      tokens,
      signingKey,
      issuer: (name) => issuerUrl(origins(), name),
      api: () => origins().base,
    }),
    audit,
    onChange: () => changes.emitChange('grants'),
  });
  return {
    get settings() {
      return runtimeSettings.settings;
    },
    runtimeSettings,
    clock,
    now,
    origins,
    issuerName: null,
    issuer: () => issuerUrl(origins(), null),
    changes,
    issuedSecrets,
    audit,
    states,
    helperFlows,
    codes,
    pushedRequests: new PushedRequests(now),
    deviceLogins,
    clientAssertions: new ClientAssertions(machineTime),
    dpopProofs: new DpopProofs(now, machineTime),
    signingKey,
    grants,
    browserLogins: new BrowserLogins(() => new URL(origins().frontend).port),
    save() {
      file?.save({
        stateKey: states.key,
        tokenKey: tokens.key,
        registered: runtimeSettings.settings.clients.registered(),
        signingKey: signingKey.pem,
        clockOffset: clock.view().offset,
        grants: grants.all(),
        codes: codes.all(),
        devices: deviceLogins.all(),
        runs: helperFlows.all(),
        notes: audit.grants(),
        authentications: audit.failedAuthentications(),
        fastPolls: audit.fastPolls(),
      });
    },
  };
}

/** The identifier of an issuer. @param name null or undefined for the default one */
export function issuerUrl({ frontend }: EmulatorOrigins, name: string | null | undefined): string {
  return name == null ? frontend : `${frontend}/${name}`;
}

/** The helper's redirect target for a client (docs/portal.md, 4). */
export function codeDeliveryUrl(portal: EmulatedPortal, client: Client): string {
  return `${portal.origins().base}/external/oauth2helper/code/set/${encodeURIComponent(client.id)}`;
}

/**
 * Invalidates everything issued, empties the findings and restores the initial settings. Ports, clients, users and the
 * CA stay. `secretsIssued` stays too: its values were secrets and must not be in any log.
 */
export function resetPortal(portal: EmulatedPortal): void {
  portal.settings.clients.restore([]);
  portal.states.rotateKey();
  portal.helperFlows.clear();
  portal.codes.clear();
  portal.pushedRequests.clear();
  portal.deviceLogins.clear();
  portal.clientAssertions.clear();
  portal.dpopProofs.clear();
  portal.signingKey.clear();
  portal.grants.clear();
  portal.audit.clear();
  portal.clock.reset();
  portal.save();
  portal.browserLogins.clear();
  portal.runtimeSettings.reset();
  for (const what of ['logins', 'devices', 'grants', 'clock'] as const) portal.changes.emitChange(what);
}
