import type { ApplianceStatus } from '../appliances/appliance-status.ts';
import { rfc3339 } from '../clock.ts';
import { damagedConnectionAdvice, joinNames } from '../connections/connection.ts';
import type { ConnectionStatus } from '../connections/connection-status.ts';
import { explainPairingFailure, isUserCaused } from '../reports/pairing-failure.ts';
import { type ProblemConditionCode, SITE_AWAY_ADVICE, whatToDo } from '../reports/problem.ts';
import {
  type ApplianceCondition,
  type Condition,
  type ConditionSeverity,
  type ConnectionCondition,
  type HubCondition,
  type HubConditionCode,
  SEVERITIES,
} from './condition.ts';

/** A problem of the hub as a whole, or wrong setup codes that somebody types. `since` in RFC 3339 UTC. */
export interface HubConditionInput {
  readonly code: HubConditionCode;
  readonly message: string;
  readonly since: string;
}

/** The state of the hub, its connections and its appliances at one moment. */
interface ConditionsInput {
  readonly connections: readonly ConnectionStatus[];
  readonly appliances: readonly ApplianceStatus[];
  readonly problems: readonly HubConditionInput[];
  /** The address of the installer's page. */
  readonly pageUrl: string;
  /** The hub's wall clock, in ms since 1970. */
  readonly now: number;
}

/**
 * Derives all conditions. This is the only place that decides whether something is wrong. The most severe conditions come
 * first; within a severity, those of the hub come before those of connections and appliances. A connection has at most
 * four: about its grant, the end of its login, its permissions and its last pairing; an appliance has at most one. If all
 * is well, there is none.
 */
export function deriveConditions({
  connections,
  appliances,
  problems,
  pageUrl: page,
  now,
}: ConditionsInput): Condition[] {
  const waiting = new Set(appliances.flatMap(({ name, waitingForApproval }) => (waitingForApproval ? [name] : [])));
  const usable = connections.filter(
    ({ appliances: users }) => users.length === 0 || users.some((name) => !waiting.has(name)),
  );
  const conditions = [
    ...problems.map(hubCondition),
    ...usable.flatMap((connection) => connectionConditions(connection, page, now)),
    ...appliances.flatMap((appliance) => applianceConditions(appliance, page)),
  ];
  return conditions.sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
}

const HUB_CONDITIONS: Record<HubConditionCode, Pick<HubCondition, 'severity' | 'what_to_do'>> = {
  certificate_expired: {
    severity: 'error',
    what_to_do:
      'Renew the certificate of lan.certificate_file; if an ACME client renews it, see the log of that client; the hub loads the new files within a minute',
  },
  certificate_expiring: {
    severity: 'warning',
    what_to_do:
      'Renew the certificate of lan.certificate_file before then; if an ACME client renews it, see the log of that client; the hub loads the new files within a minute',
  },
  hub_id_taken: {
    severity: 'error',
    what_to_do: 'Find the other hub: if one is a copy of the other, switch the copy off and set it up from scratch',
  },
  hub_missing: {
    severity: 'warning',
    what_to_do:
      'Check the power and the network of that hub, and its log; if it was removed for good, run "latchkey site remove NAME"',
  },
  hub_name_claimed: {
    severity: 'warning',
    what_to_do:
      'Find the device with this address, and rename it or disconnect it from the network; appliances are safe, because they check the CA pin (ca_fingerprint)',
  },
  not_announced: {
    severity: 'warning',
    what_to_do:
      'See the hub\'s log (with systemd: "sudo journalctl -u latchkey") for why mDNS does not work; appliances that know the hub\'s address are still served',
  },
  portal_moved: {
    severity: 'error',
    what_to_do:
      'Ask the cloud whether it has moved: if it has, confirm it in the configuration as this message says; if not, its metadata may have been changed by somebody else, and the hub goes on using the former address',
  },
  database_unavailable: { severity: 'warning', what_to_do: SITE_AWAY_ADVICE },
  store_changed: {
    severity: 'error',
    what_to_do:
      'Remove the appliances that this message names, add them again and pair them; if somebody else had access to the hub or its SD card, follow docs/stolen-card.md',
  },
  store_recovered: {
    severity: 'warning',
    what_to_do:
      'If you have just restored a backup of the hub\'s files, this is expected; otherwise check the disk or SD card, and replace it if this happens again; "latchkey status" shows what must be paired again',
  },
  store_slow: {
    severity: 'warning',
    what_to_do:
      'Make a backup now ("latchkey backup FILE"), and keep the file on another machine; then replace the SD card or disk, unless another program on this machine keeps it busy',
  },
  store_unwritable: {
    severity: 'error',
    what_to_do:
      "Free space on the disk that holds the hub's state_dir, or replace the disk; the hub then continues automatically",
  },
  store_volatile: {
    severity: 'warning',
    what_to_do:
      'Turn the overlay file system off ("sudo raspi-config": Performance Options, Overlay File System) and reboot, or keep the state directory on a disk (docs/state.md); until then, "latchkey backup FILE" saves everything in a file for another machine',
  },
  wrong_setup_codes: {
    severity: 'warning',
    what_to_do:
      'If this was not you, find the device with this address and disconnect it from your network; the code cannot be guessed, and other devices can sign in as before',
  },
};

function hubCondition({ code, message, since }: HubConditionInput): HubCondition {
  return {
    code,
    connection: null,
    appliance: null,
    appliances: [],
    message,
    since,
    until: null,
    ...HUB_CONDITIONS[code],
  };
}

/** What a problem of a grant means for its connection. */
const PROBLEM_CONDITIONS: Record<ProblemConditionCode, readonly [severity: ConditionSeverity, consequence: string]> = {
  portal_unreachable: ['warning', 'waits for a new token'],
  portal_deferred: ['warning', 'waits for a new token'],
  portal_rejected: ['warning', 'waits for a new token'],
  clock_unknown: ['warning', 'waits for a new token'],
  answer_lost: ['warning', 'may have to be connected again'],
  credentials_untried: ['warning', 'waits for a new token'],
  misconfigured: ['error', 'gets no new tokens'],
  store_unwritable: ['error', 'gets no new tokens'],
  database_unavailable: ['warning', 'waits for a new token'],
  refused: ['error', 'is no longer connected'],
};

function connectionConditions(status: ConnectionStatus, page: string, now: number): ConnectionCondition[] {
  const { name, appliances, own } = status;
  const url = own ? `${page}appliances/${name}` : `${page}connections/${name}`;
  const subject = own ? name : `The login ${name}`;
  const condition = (
    code: ConnectionCondition['code'],
    severity: ConditionSeverity,
    message: string,
    what_to_do: string,
    since: string | null = null,
    until: string | null = null,
  ): ConnectionCondition => ({
    ...{ code, severity, connection: name, appliance: own ? name : null, appliances },
    ...{ message: `${message}${affected(status)}`, what_to_do, since, until },
  });

  const conditions: ConnectionCondition[] = [];
  const {
    state,
    problem,
    expiresIn,
    grantMissing,
    pairingFailed,
    credentialLocation = { portal: status.portal },
  } = status;
  if (problem !== null) {
    const code = status.credentialsUntried === true ? 'credentials_untried' : problem.code;
    const [severity, consequence] = PROBLEM_CONDITIONS[code];
    const until = expiresIn === null || expiresIn < 1 ? null : rfc3339(now + expiresIn * 1000);
    const message = `${subject} ${consequence}: ${uncapitalize(problem.message)}`;
    const solution = whatToDo(code, name, url, credentialLocation);
    const advice = adviceOnMissingGrant(status, solution) ?? solution;
    conditions.push(condition(grantMissing ?? code, severity, message, advice, problem.since, until));
  } else if (state === 'pairing') {
    const login = `Log in with the link that ${url} shows`;
    const nothing = `Nothing: the hub keeps asking, and ${url} shows the login link as soon as the portal gives one`;
    conditions.push(
      status.authorizeUrl === undefined
        ? condition('portal_awaited', 'info', `${subject} waits for the portal's response`, nothing)
        : condition('login_open', 'info', `${subject} waits for the login`, login),
    );
  } else if (state === 'unpaired' && pairingFailed === undefined) {
    const advice = `Log in once to connect it: open ${url} or run "latchkey pair ${name}"`;
    conditions.push(condition('not_paired', 'info', `${subject} is not paired yet`, advice));
  }
  if (status.loginEndingSince !== undefined && status.state !== 'needs_pairing') {
    const end =
      status.withoutRefreshToken === true
        ? 'when its access token ends; the portal gave no refresh token: ask for offline_access'
        : 'when its login ends';
    const message = `${subject} must be connected again before ${status.loginEnds}, ${end}`;
    const first = status.withoutRefreshToken === true ? `Add offline_access to the scope of ${name}, then log` : 'Log';
    const advice = `${first} in again before then: open ${url} or run "latchkey pair ${name}"`;
    conditions.push(condition('login_ending', 'warning', message, advice, status.loginEndingSince));
  }
  if (status.missingScope !== undefined) {
    const message = `${subject} is connected, but the portal did not grant all permissions that were asked for: ${status.missingScope.join(', ')} ${status.missingScope.length === 1 ? 'is' : 'are'} missing`;
    const advice = `If ${name} needs them, log in again and allow them: open ${url} or run "latchkey pair ${name}"`;
    conditions.push(condition('permissions_missing', 'warning', message, advice, status.lastRefresh ?? rfc3339(now)));
  }
  if (pairingFailed !== undefined) {
    const { reason, detail } = pairingFailed;
    const { cause, advice } = explainPairingFailure(reason, name, credentialLocation, detail);
    const message = `The last pairing of ${name} failed: ${cause}`;
    const severity = isUserCaused(pairingFailed.reason) ? 'info' : 'warning';
    conditions.push(condition('pairing_failed', severity, message, capitalize(advice), pairingFailed.at));
  }
  return conditions;
}

/** @returns null if the solution of the problem helps */
function adviceOnMissingGrant({ grantMissing, portal, name }: ConnectionStatus, solution: string): string | null {
  if (grantMissing === 'connection_damaged') return damagedConnectionAdvice(name);
  if (grantMissing !== 'portal_changed') return null;
  return `If this change was not intended, revert portals.${portal} and run "latchkey reload"; otherwise ${uncapitalize(solution)}`;
}

/** Names the appliances that a condition of a shared connection concerns. */
function affected({ own, appliances }: ConnectionStatus): string {
  if (own || appliances.length === 0) return '';
  return `; ${joinNames(appliances)} ${appliances.length === 1 ? 'is' : 'are'} affected`;
}

function applianceConditions(status: ApplianceStatus, page: string): ApplianceCondition[] {
  const { name: appliance, connection, waitingForApproval, withoutCredentials } = status;
  const url = `${page}appliances/${appliance}`;
  const condition = (
    code: ApplianceCondition['code'],
    severity: ConditionSeverity,
    message: string,
    what_to_do: string,
    since: string | null = null,
  ): ApplianceCondition => ({
    ...{ code, severity, connection, appliance, appliances: [appliance], message, what_to_do, since, until: null },
  });

  if (waitingForApproval !== undefined) {
    const { comparisonCode, address, since } = waitingForApproval;
    const message = `${appliance} has registered itself from ${address} with the code ${comparisonCode}, and waits for an installer's approval`;
    const advice = `If it is yours and shows the same code, approve it at ${url} or run "latchkey appliance approve ${appliance} --code ${comparisonCode}"; if it is not yours, remove it there`;
    return [condition('approval_needed', 'warning', message, advice, since)];
  }
  if (status.credentialsDamaged === true) {
    const message = `${appliance} gets no tokens, because its entry in the store was damaged, or something other than the hub changed it`;
    const advice = `Run "latchkey appliance remove ${appliance}", then add it again and pair it`;
    return [condition('credentials_damaged', 'error', message, advice)];
  }
  if (withoutCredentials !== true) return usageConditions(status);
  const message = `${appliance} gets no tokens, because it is no longer in the configuration`;
  const advice = `Add it to the configuration again, give it a secret ("latchkey appliance rotate-secret ${appliance}") or remove it ("latchkey appliance remove ${appliance}")`;
  return [condition('without_credentials', 'warning', message, advice)];
}

/** What is unusual about the use of a connection that works; at most one. */
function usageConditions(status: ApplianceStatus): ApplianceCondition[] {
  const { name: appliance, connection, unusualUsage, lastToken } = status;
  if (unusualUsage === undefined) return [];
  const texts = {
    silent: {
      code: 'appliance_silent',
      message: `${appliance} has not requested a token for a week or longer, although it could get one`,
      what_to_do: `Check whether ${appliance} is switched on and still uses this hub; if you no longer have it, run "latchkey appliance remove ${appliance}"`,
      since: lastToken,
    },
    asks_often: {
      code: 'appliance_asks_often',
      message: `${appliance} requests tokens more than a hundred times as often as they expire`,
      what_to_do: `Nothing: the hub serves it as usual; its maker can let it keep each token until shortly before it expires (expires_in)`,
      since: null,
    },
  } as const;
  const subject = { connection, appliance, appliances: [appliance] } as const;
  return [{ severity: 'info', ...subject, ...texts[unusualUsage], until: null }];
}

/** For a sentence that follows a colon. */
function uncapitalize(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
