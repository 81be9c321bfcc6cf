import { systemRandom } from '../system/random.ts';
import { ClientAudit } from './audit/client-audit.ts';
import { Changes } from './changes.ts';
import type { StateFile } from './memory/state-file.ts';
import { AuthorizationCodes } from './oauth/authorization-codes.ts';
import { BearerTokens } from './oauth/bearer-tokens.ts';
import { BrowserLogins } from './oauth/browser-logins.ts';
import { Grants } from './oauth/grants.ts';
import { HelperRuns } from './oauth/helper-runs.ts';
import { IssuedSecrets } from './oauth/issued-secrets.ts';
import { States } from './oauth/state.ts';
import { type Client, type EffectiveSettings, SettingsInForce } from './settings/effective-settings.ts';
import { VirtualClock } from './virtual-clock.ts';

/** Where the portal is reached, without a trailing slash. Known once both origins listen. */
export interface Origins {
  /** {base_url} of the specification. */
  readonly base: string;
  /** {frontend_url} of the specification. */
  readonly frontend: string;
}

/** The portal's whole state, which the endpoints of both origins work on. */
export interface Portal {
  /** The settings in force; a request goes by those that it began with. */
  readonly settings: EffectiveSettings;
  readonly settingsInForce: SettingsInForce;
  readonly clock: VirtualClock;
  /** The emulator's time, in milliseconds since 1970. */
  readonly now: () => number;
  readonly origins: () => Origins;
  readonly changes: Changes;
  readonly issued: IssuedSecrets;
  readonly audit: ClientAudit;
  readonly states: States;
  readonly runs: HelperRuns;
  readonly codes: AuthorizationCodes;
  readonly grants: Grants;
  readonly browserLogins: BrowserLogins;
  /** Writes the state to its file, if it has one; to be called before anybody hears of a change. */
  readonly keep: () => void;
}

/** A portal that has seen nothing yet, or what its state file holds. */
export function createPortal(settings: EffectiveSettings, origins: () => Origins, file: StateFile | null): Portal {
  const kept = file?.state ?? {};
  const changes = new Changes();
  const clock = new VirtualClock(settings.clock, kept.clockOffset ?? 0, () => changes.changed('clock'));
  const now = () => clock.now().wall;
  const tokens = new BearerTokens(kept.tokenKey ?? systemRandom.token(32));
  const issued = new IssuedSecrets();
  const audit = new ClientAudit(kept);
  const settingsInForce = new SettingsInForce(settings, () => changes.changed('settings'));
  const states = new States(kept.stateKey, now, issued);
  const runs = new HelperRuns(kept.runs ?? [], () => changes.changed('logins'));
  const codes = new AuthorizationCodes(kept.codes ?? [], now, issued);
  const grants = new Grants(kept.grants ?? [], {
    tokens,
    now,
    issued,
    audit,
    changed: () => changes.changed('grants'),
  });
  return {
    get settings() {
      return settingsInForce.settings;
    },
    settingsInForce,
    clock,
    now,
    origins,
    changes,
    issued,
    audit,
    states,
    runs,
    codes,
    grants,
    browserLogins: new BrowserLogins(),
    keep() {
      file?.save({
        stateKey: states.key,
        tokenKey: tokens.key,
        clockOffset: clock.view().offset,
        grants: grants.all(),
        codes: codes.all(),
        runs: runs.all(),
        notes: audit.grants(),
        authentications: audit.authentications(),
      });
    },
  };
}

/** The helper's redirection endpoint for a client (specification, endpoint 6). */
export function codeSetUrl(portal: Portal, client: Client): string {
  return `${portal.origins().base}/external/oauth2helper/code/set/${encodeURIComponent(client.id)}`;
}

/**
 * As at the start: everything issued is forgotten (and so dead), the findings are empty, the settings are the start's.
 * Ports, clients, users and the CA stay, and so does `secretsIssued`: what it names was still a secret.
 */
export function resetPortal(portal: Portal): void {
  portal.states.renewKey();
  portal.runs.clear();
  portal.codes.clear();
  portal.grants.clear();
  portal.audit.clear();
  portal.clock.reset();
  portal.keep();
  portal.browserLogins.clear();
  portal.settingsInForce.reset();
  for (const what of ['logins', 'grants', 'clock'] as const) portal.changes.changed(what);
}
