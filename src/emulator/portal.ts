import { systemRandom } from '../system/random.ts';
import { BoundedMap } from './bounded-collections.ts';
import type { LoggedRequest } from './http/logged-request.ts';
import { AuthorizationCodes } from './oauth/authorization-codes.ts';
import { BearerTokens } from './oauth/bearer-tokens.ts';
import { BrowserLogins } from './oauth/browser-logins.ts';
import { ClientAssertions } from './oauth/client-assertions.ts';
import { ClientAudit } from './oauth/client-audit.ts';
import { DeviceLogins } from './oauth/device-logins.ts';
import { DpopProofs } from './oauth/dpop-proofs.ts';
import { HelperFlows, HelperStates } from './oauth/helper-flows.ts';
import { IssuedGrants } from './oauth/issued-grants.ts';
import { IssuedSecrets } from './oauth/issued-secrets.ts';
import { SigningKey } from './oauth/jwt.ts';
import { PushedRequests } from './oauth/pushed-requests.ts';
import type { Client } from './settings/client-registry.ts';
import type { EffectiveSettings } from './settings/effective-settings.ts';
import type { SettingOptions } from './settings/settings.ts';
import { applySettingsChange, pickSettings } from './settings/validation.ts';
import type { PersistedState, StateFile } from './state-file.ts';
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

  emit(event: EmulatorEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  /** Notifies listeners that a part of the state changed, so that they read it again. */
  emitChange(what: ChangeTopic): void {
    this.emit({ event: 'change', data: { what } });
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
}

/** The addresses of both origins, without a trailing slash. They are empty until both origins listen. */
export interface EmulatorOrigins {
  /** `base_url` in docs/portal.md. */
  readonly base: string;
  /** `frontend_url` in docs/portal.md. */
  readonly frontend: string;
}

/** What a reset replaces. */
interface PortalState {
  readonly tokens: BearerTokens;
  readonly signingKey: SigningKey;
  readonly audit: ClientAudit;
  readonly states: HelperStates;
  readonly helperFlows: HelperFlows;
  readonly codes: AuthorizationCodes;
  readonly pushedRequests: PushedRequests;
  readonly deviceLogins: DeviceLogins;
  readonly clientAssertions: ClientAssertions;
  readonly dpopProofs: DpopProofs;
  readonly grants: IssuedGrants;
  readonly browserLogins: BrowserLogins;
  /** The requests of a kind and client since the start of a window, by the emulator's clock. */
  readonly rateWindows: BoundedMap<{ readonly openedAt: number; count: number }>;
}

/** The portal, shared by the endpoints of both origins. */
export interface EmulatedPortal extends PortalState {
  /** The current settings, an object that is never mutated. A request keeps the one that it began with. */
  readonly settings: EffectiveSettings;
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
  /**
   * Changes some settings. If one value is invalid, nothing changes.
   * @throws OptionError
   */
  readonly change: (change: SettingOptions) => void;
  /** Writes the state to the state file, if there is one. Must be called before a response reports a change. */
  readonly save: () => void;
  /**
   * Invalidates everything issued, empties the findings and restores the initial settings. Ports, clients, users and the
   * CA stay. `issuedSecrets` stays too: its values were secrets and must not be in any log.
   */
  readonly reset: () => void;
}

/** Pairs of client and endpoint whose requests are counted at the same time. */
const MAX_RATE_WINDOWS = 10_000;

/** Creates a portal with the state of its file, or with an empty one. */
export function createPortal(
  initialSettings: EffectiveSettings,
  origins: () => EmulatorOrigins,
  file: StateFile | null,
): EmulatedPortal {
  let settings = initialSettings;
  const changes = new ChangeEmitter();
  const clock = new VirtualClock(settings.clock, file?.state.clockOffset ?? 0, () => changes.emitChange('clock'));
  const now = () => clock.now();
  const issuedSecrets = new IssuedSecrets();
  settings.clients.restore(file?.state.registered ?? []);
  const createState = (saved: Partial<PersistedState>): PortalState => {
    const machineTime = () => initialSettings.clock.now().wall;
    const tokens = new BearerTokens(saved.tokenKey ?? systemRandom.token(32));
    const signingKey = new SigningKey(saved.signingKey ?? null);
    const audit = new ClientAudit(saved.misuses ?? []);
    return {
      tokens,
      signingKey,
      audit,
      states: new HelperStates(saved.stateKey ?? systemRandom.token(32), now, issuedSecrets),
      helperFlows: new HelperFlows(saved.runs ?? [], () => changes.emitChange('logins')),
      codes: new AuthorizationCodes(saved.codes ?? [], now, issuedSecrets),
      pushedRequests: new PushedRequests(now),
      deviceLogins: new DeviceLogins(saved.devices ?? [], now, issuedSecrets, () => changes.emitChange('devices')),
      clientAssertions: new ClientAssertions(machineTime),
      dpopProofs: new DpopProofs(now, machineTime),
      grants: new IssuedGrants(saved.grants ?? [], {
        tokens,
        signingKey,
        issuer: (name) => issuerUrl(origins(), name),
        api: () => origins().base,
        now,
        audit,
        onChange: () => changes.emitChange('grants'),
      }),
      browserLogins: new BrowserLogins(() => new URL(origins().frontend).port),
      rateWindows: new BoundedMap(MAX_RATE_WINDOWS),
    };
  };
  const portal: EmulatedPortal = {
    ...createState(file?.state ?? {}),
    get settings() {
      return settings;
    },
    clock,
    now,
    origins,
    issuerName: null,
    issuer: () => issuerUrl(origins(), null),
    changes,
    issuedSecrets,
    change(change) {
      settings = { ...settings, ...applySettingsChange(change, pickSettings(settings)) };
      changes.emitChange('settings');
    },
    save() {
      file?.save({
        stateKey: portal.states.key,
        tokenKey: portal.tokens.key,
        registered: settings.clients.registered(),
        signingKey: portal.signingKey.pem,
        clockOffset: clock.view().offset,
        grants: portal.grants.all(),
        codes: portal.codes.all(),
        devices: portal.deviceLogins.all(),
        runs: portal.helperFlows.all().map((flow) => ({ ...flow, polls: [] })),
        misuses: portal.audit.all(),
      });
    },
    reset() {
      Object.assign(portal, createState({}));
      settings.clients.restore([]);
      clock.reset();
      settings = initialSettings;
      portal.save();
      for (const what of ['settings', 'logins', 'devices', 'grants', 'clock'] as const) changes.emitChange(what);
    },
  };
  return portal;
}

/** The identifier of an issuer. @param name null or undefined for the default one */
export function issuerUrl({ frontend }: EmulatorOrigins, name: string | null | undefined): string {
  return name == null ? frontend : `${frontend}/${name}`;
}

/** The helper's redirect target for a client (docs/portal.md, 4). */
export function codeDeliveryUrl(portal: EmulatedPortal, client: Client): string {
  return `${portal.origins().base}/external/oauth2helper/code/set/${encodeURIComponent(client.id)}`;
}
