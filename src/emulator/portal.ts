import { systemRandom } from '../system/random.ts';
import { ClientAudit } from './audit/client-audit.ts';
import { ChangeEmitter } from './change-emitter.ts';
import type { StateFile } from './memory/state-file.ts';
import { AuthorizationCodes } from './oauth/authorization-codes.ts';
import { BearerTokens } from './oauth/bearer-tokens.ts';
import { BrowserLogins } from './oauth/browser-logins.ts';
import { HelperFlows } from './oauth/helper-flows.ts';
import { HelperStates } from './oauth/helper-state.ts';
import { IssuedGrants } from './oauth/issued-grants.ts';
import { IssuedSecrets } from './oauth/issued-secrets.ts';
import { type Client, type EffectiveSettings, RuntimeSettings } from './settings/effective-settings.ts';
import { VirtualClock } from './virtual-clock.ts';

/** Where the portal is reached, without a trailing slash. Known once both origins listen. */
export interface EmulatorOrigins {
  /** {base_url} of the specification. */
  readonly base: string;
  /** {frontend_url} of the specification. */
  readonly frontend: string;
}

/** The portal's whole state, which the endpoints of both origins work on. */
export interface EmulatedPortal {
  /** The settings in force; a request goes by those that it began with. */
  readonly settings: EffectiveSettings;
  readonly runtimeSettings: RuntimeSettings;
  readonly clock: VirtualClock;
  /** The emulator's time, in milliseconds since 1970. */
  readonly now: () => number;
  readonly origins: () => EmulatorOrigins;
  readonly changes: ChangeEmitter;
  readonly issuedSecrets: IssuedSecrets;
  readonly audit: ClientAudit;
  readonly states: HelperStates;
  readonly helperFlows: HelperFlows;
  readonly codes: AuthorizationCodes;
  readonly grants: IssuedGrants;
  readonly browserLogins: BrowserLogins;
  /** Writes the state to its file, if it has one; to be called before anybody hears of a change. */
  readonly save: () => void;
}

/** A portal that has seen nothing yet, or what its state file holds. */
export function createPortal(
  settings: EffectiveSettings,
  origins: () => EmulatorOrigins,
  file: StateFile | null,
): EmulatedPortal {
  const kept = file?.state ?? {};
  const changes = new ChangeEmitter();
  const clock = new VirtualClock(settings.clock, kept.clockOffset ?? 0, () => changes.emitChange('clock'));
  const now = () => clock.now().wall;
  const tokens = new BearerTokens(kept.tokenKey ?? systemRandom.token(32));
  const issued = new IssuedSecrets();
  const audit = new ClientAudit(kept);
  const settingsInForce = new RuntimeSettings(settings, () => changes.emitChange('settings'));
  const states = new HelperStates(kept.stateKey, now, issued);
  const runs = new HelperFlows(kept.runs ?? [], () => changes.emitChange('logins'));
  const codes = new AuthorizationCodes(kept.codes ?? [], now, issued);
  const grants = new IssuedGrants(kept.grants ?? [], {
    tokens,
    now,
    issued,
    audit,
    onChange: () => changes.emitChange('grants'),
  });
  return {
    get settings() {
      return settingsInForce.settings;
    },
    runtimeSettings: settingsInForce,
    clock,
    now,
    origins,
    changes,
    issuedSecrets: issued,
    audit,
    states,
    helperFlows: runs,
    codes,
    grants,
    browserLogins: new BrowserLogins(),
    save() {
      file?.save({
        stateKey: states.key,
        tokenKey: tokens.key,
        clockOffset: clock.view().offset,
        grants: grants.all(),
        codes: codes.all(),
        runs: runs.all(),
        notes: audit.grants(),
        authentications: audit.failedAuthentications(),
      });
    },
  };
}

/** The helper's redirection endpoint for a client (specification, endpoint 6). */
export function codeSetUrl(portal: EmulatedPortal, client: Client): string {
  return `${portal.origins().base}/external/oauth2helper/code/set/${encodeURIComponent(client.id)}`;
}

/**
 * As at the start: everything issued is forgotten (and so dead), the findings are empty, the settings are the start's.
 * Ports, clients, users and the CA stay, and so does `secretsIssued`: what it names was still a secret.
 */
export function resetPortal(portal: EmulatedPortal): void {
  portal.states.rotateKey();
  portal.helperFlows.clear();
  portal.codes.clear();
  portal.grants.clear();
  portal.audit.clear();
  portal.clock.reset();
  portal.save();
  portal.browserLogins.clear();
  portal.runtimeSettings.reset();
  for (const what of ['logins', 'grants', 'clock'] as const) portal.changes.emitChange(what);
}
