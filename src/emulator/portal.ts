import { AuthorizationCodes } from './authorization-codes.ts';
import { BearerTokens } from './bearer-tokens.ts';
import { BrowserLogins } from './browser-logins.ts';
import { Changes } from './changes.ts';
import { Grants } from './grants.ts';
import { HelperRuns } from './helper-runs.ts';
import { IssuedSecrets } from './issued-secrets.ts';
import { Judge } from './judge.ts';
import type { Memory } from './memory.ts';
import { RequestRates } from './request-rates.ts';
import type { Client, Settings } from './settings/settings.ts';
import { SettingsInForce } from './settings/settings.ts';
import { States } from './state.ts';
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
  readonly settings: Settings;
  readonly switches: SettingsInForce;
  readonly clock: VirtualClock;
  /** The emulator's time, in milliseconds since 1970. */
  readonly now: () => number;
  readonly origins: () => Origins;
  readonly changes: Changes;
  readonly issued: IssuedSecrets;
  readonly judge: Judge;
  readonly rates: RequestRates;
  /** Does several writes at once: a crash leaves all of them behind or none. */
  readonly together: Memory['together'];
  readonly states: States;
  readonly runs: HelperRuns;
  readonly codes: AuthorizationCodes;
  readonly grants: Grants;
  readonly browserLogins: BrowserLogins;
}

/** A portal that has seen nothing yet, or what its memory holds. */
export function createPortal(settings: Settings, origins: () => Origins, memory: Memory): Portal {
  const changes = new Changes();
  const clock = new VirtualClock(settings.clock, memory, () => changes.changed('clock'));
  const now = () => clock.now().wall;
  const tokens = new BearerTokens(memory.key('tokens'));
  const issued = new IssuedSecrets(tokens);
  const judge = new Judge(memory);
  const switches = new SettingsInForce(settings, () => changes.changed('settings'));
  return {
    get settings() {
      return switches.settings;
    },
    switches,
    clock,
    now,
    origins,
    changes,
    issued,
    judge,
    rates: new RequestRates(),
    together: (work) => memory.together(work),
    states: new States(memory.key('states'), () => memory.newKey('states'), now, issued),
    runs: new HelperRuns(memory.runs, () => changes.changed('logins')),
    codes: new AuthorizationCodes(memory.codes, now, issued),
    browserLogins: new BrowserLogins(),
    grants: new Grants({ tokens, kept: memory.grants }, now, issued, judge, () => changes.changed('grants')),
  };
}

/** The helper's redirection endpoint for a client (specification, endpoint 6). */
export function codeSetUrl(portal: Portal, client: Client): string {
  return `${portal.origins().base}/external/oauth2helper/code/set/${encodeURIComponent(client.id)}`;
}
