import type { ApplianceStatus } from '../administration.ts';
import { rfc3339 } from '../clock.ts';
import { explainPairingFailure, isUserCaused } from '../reports/pairing-failure.ts';
import { type ProblemConditionCode, whatToDo } from '../reports/problem.ts';
import {
  type ApplianceCondition,
  type Condition,
  type ConditionSeverity,
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

/** The state of the hub and its appliances at one moment. */
interface ConditionsInput {
  readonly appliances: readonly ApplianceStatus[];
  readonly problems: readonly HubConditionInput[];
  /** The address of the installer's page. */
  readonly pageUrl: string;
  /** The hub's wall clock, in ms since 1970. */
  readonly now: number;
}

/**
 * Derives all conditions. This is the only place that decides whether something is wrong. The most severe conditions
 * come first; within a severity, those of the hub come before those of its appliances. An appliance has at most three
 * conditions: about its grant, its last pairing and its credentials. A healthy appliance has none.
 */
export function deriveConditions({ appliances, problems, pageUrl: page, now }: ConditionsInput): Condition[] {
  const conditions = [
    ...problems.map(hubCondition),
    ...appliances.flatMap((appliance) => applianceConditions(appliance, page, now)),
  ];
  return conditions.sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
}

const HUB_CONDITIONS: Record<HubConditionCode, Pick<HubCondition, 'severity' | 'what_to_do'>> = {
  hub_id_taken: {
    severity: 'error',
    what_to_do: 'Find the other hub: if one is a copy of the other, switch the copy off and set it up from scratch',
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
  store_changed: {
    severity: 'error',
    what_to_do:
      'Remove the appliances that this message names, add them again and pair them; if somebody else had access to the hub or its SD card, follow docs/stolen-card.md',
  },
  store_recovered: {
    severity: 'warning',
    what_to_do:
      'Check the disk or SD card, and replace it if this happens again; "latchkey status" shows what must be paired again',
  },
  store_unwritable: {
    severity: 'error',
    what_to_do:
      "Free space on the disk that holds the hub's state_dir, or replace the disk; the hub then continues automatically",
  },
  wrong_setup_codes: {
    severity: 'warning',
    what_to_do:
      'If this was not you, find the device with this address and disconnect it from your network; the code cannot be guessed, and other devices can sign in as before',
  },
};

function hubCondition({ code, message, since }: HubConditionInput): HubCondition {
  return { code, appliance: null, message, since, until: null, ...HUB_CONDITIONS[code] };
}

/** What a problem of a grant means for its appliance. */
const PROBLEM_CONDITIONS: Record<ProblemConditionCode, readonly [severity: ConditionSeverity, consequence: string]> = {
  portal_unreachable: ['warning', 'waits for a new token'],
  portal_deferred: ['warning', 'waits for a new token'],
  portal_rejected: ['warning', 'waits for a new token'],
  clock_unknown: ['warning', 'waits for a new token'],
  answer_lost: ['warning', 'may have to be connected again'],
  credentials_untried: ['warning', 'waits for a new token'],
  misconfigured: ['error', 'gets no new tokens'],
  store_unwritable: ['error', 'gets no new tokens'],
  refused: ['error', 'is no longer connected'],
};

function applianceConditions(status: ApplianceStatus, page: string, now: number): ApplianceCondition[] {
  const { name: appliance, waitingForApproval, withoutCredentials } = status;
  const url = `${page}appliances/${appliance}`;
  const condition = (
    code: ApplianceCondition['code'],
    severity: ConditionSeverity,
    message: string,
    what_to_do: string,
    since: string | null = null,
    until: string | null = null,
  ): ApplianceCondition => ({ code, severity, appliance, message, what_to_do, since, until });

  if (waitingForApproval !== undefined) {
    const { comparisonCode, address, since } = waitingForApproval;
    const from = address === null ? '' : ` from ${address}`;
    const message = `${appliance} has registered itself${from} with the code ${comparisonCode}, and waits for an installer's approval`;
    const advice = `If it is yours and shows the same code, approve it at ${url} or run "latchkey appliance approve ${appliance} --code ${comparisonCode}"; if it is not yours, remove it there`;
    return [condition('approval_needed', 'warning', message, advice, since)];
  }

  const conditions: ApplianceCondition[] = [];
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
    const message = `${appliance} ${consequence}: ${uncapitalize(problem.message)}`;
    const solution = whatToDo(code, appliance, url, credentialLocation);
    const revertOrSolve = `If this change was not intended, revert portals.${status.portal} and run "latchkey reload"; otherwise ${uncapitalize(solution)}`;
    const advice = grantMissing === 'portal_changed' ? revertOrSolve : solution;
    conditions.push(condition(grantMissing ?? code, severity, message, advice, problem.since, until));
  } else if (state === 'pairing') {
    const login = `Log in with the link that ${url} shows`;
    const nothing = `Nothing: the hub keeps asking, and ${url} shows the login link as soon as the portal gives one`;
    conditions.push(
      status.authorizeUrl === undefined
        ? condition('portal_awaited', 'info', `${appliance} waits for the portal's response`, nothing)
        : condition('login_open', 'info', `${appliance} waits for the login`, login),
    );
  } else if (state === 'unpaired' && pairingFailed === undefined) {
    const advice = `Log in once to connect it: open ${url} or run "latchkey pair ${appliance}"`;
    conditions.push(condition('not_paired', 'info', `${appliance} is not paired yet`, advice));
  }
  if (pairingFailed !== undefined) {
    const { cause, advice } = explainPairingFailure(pairingFailed.reason, appliance, credentialLocation);
    const message = `The last pairing of ${appliance} failed: ${cause}`;
    const severity = isUserCaused(pairingFailed.reason) ? 'info' : 'warning';
    conditions.push(condition('pairing_failed', severity, message, capitalize(advice), pairingFailed.at));
  }
  if (status.credentialsDamaged === true) {
    const message = `${appliance} gets no tokens, because its entry in the store was damaged, or something other than the hub changed it`;
    const advice = `Run "latchkey appliance remove ${appliance}", then add it again and pair it`;
    conditions.push(condition('credentials_damaged', 'error', message, advice));
  } else if (withoutCredentials === true) {
    const message = `${appliance} gets no tokens, because it is no longer in the configuration`;
    const advice = `Add it to the configuration again, give it a secret ("latchkey appliance rotate-secret ${appliance}") or remove it ("latchkey appliance remove ${appliance}")`;
    conditions.push(condition('without_credentials', 'warning', message, advice));
  }
  return conditions;
}

/** For a sentence that follows a colon. */
function uncapitalize(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
