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

/** Something about the hub as a whole: a problem of its own, or what others do to it. `since` in RFC 3339 UTC. */
export interface HubConditionInput {
  readonly code: HubConditionCode;
  readonly message: string;
  readonly since: string;
}

/** What is known of the hub and its appliances at a moment. */
interface ConditionsInput {
  readonly appliances: readonly ApplianceStatus[];
  readonly problems: readonly HubConditionInput[];
  /** The address of the installer's page. */
  readonly pageUrl: string;
  /** The hub's wall clock, in ms since 1970. */
  readonly now: number;
}

/**
 * The one judgement of health: what is not as it should be, the gravest first, and of what is as grave the hub's own before that of
 * its appliances. An appliance has at most three conditions: of its grant, of its last pairing and of its credentials; one that is well has none.
 */
export function deriveConditions({ appliances, problems, pageUrl: page, now }: ConditionsInput): Condition[] {
  const found = [
    ...problems.map(hubCondition),
    ...appliances.flatMap((appliance) => applianceConditions(appliance, page, now)),
  ];
  return found.sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
}

const HUB_CONDITIONS: Record<HubConditionCode, Pick<HubCondition, 'severity' | 'what_to_do'>> = {
  hub_id_taken: {
    severity: 'error',
    what_to_do: 'Find the other hub: if one is a copy of the other, switch the copy off and set it up anew',
  },
  hub_name_claimed: {
    severity: 'warning',
    what_to_do:
      'Find the device that has this address, and give it another name or take it off the network; appliances are safe, because they check the pin',
  },
  not_announced: {
    severity: 'warning',
    what_to_do:
      "Look into the hub's log for what keeps mDNS from working; appliances that know the hub's address are served",
  },
  store_changed: {
    severity: 'error',
    what_to_do:
      'Look through the appliances, remove those that are named, add them again and pair them; if somebody had the hub or its card in hand, do what docs/stolen-card.md says',
  },
  store_recovered: {
    severity: 'warning',
    what_to_do:
      'Check the disk or SD card, and replace it where this happens again; "latchkey status" shows what must be paired again',
  },
  store_unwritable: {
    severity: 'error',
    what_to_do: "Make room on the disk that holds the hub's state_dir, or replace it; the hub then goes on by itself",
  },
  wrong_setup_codes: {
    severity: 'warning',
    what_to_do:
      'If this was not you, find the device with this address on your network and take it off; nobody can guess the code, and other devices are let in as before',
  },
};

function hubCondition({ code, message, since }: HubConditionInput): HubCondition {
  return { code, appliance: null, message, since, until: null, ...HUB_CONDITIONS[code] };
}

/** What a problem of a grant means to its appliance. */
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
  const own = `${page}appliances/${appliance}`;
  const of = (
    code: ApplianceCondition['code'],
    severity: ConditionSeverity,
    message: string,
    what_to_do: string,
    since: string | null = null,
    until: string | null = null,
  ): ApplianceCondition => ({ code, severity, appliance, message, what_to_do, since, until });

  if (waitingForApproval !== undefined) {
    const { comparisonCode: compared, address, since } = waitingForApproval;
    const from = address === null ? '' : ` from ${address}`;
    const message = `${appliance} has introduced itself${from}, with the code ${compared}, and waits for an installer's approval`;
    const advice = `If it is yours, and shows the same code, approve it at ${own} or run "latchkey appliance approve ${appliance} --code ${compared}"; if it is not, remove it there`;
    return [of('approval_needed', 'warning', message, advice, since)];
  }

  const found: ApplianceCondition[] = [];
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
    const login = whatToDo(code, appliance, own, credentialLocation);
    const change = `If that was not meant, change portals.${status.portal} back and run "latchkey reload"; else ${uncapitalize(login)}`;
    const advice = grantMissing === 'portal_changed' ? change : login;
    found.push(of(grantMissing ?? code, severity, message, advice, problem.since, until));
  } else if (state === 'pairing') {
    const login = `Log in through its link, which ${own} shows`;
    const nothing = `Nothing: the hub goes on asking, and ${own} shows the link to log in through once the portal gives one`;
    found.push(
      status.authorizeUrl === undefined
        ? of('portal_awaited', 'info', `${appliance} waits for the portal's answer`, nothing)
        : of('login_open', 'info', `${appliance} waits for the login`, login),
    );
  } else if (state === 'unpaired' && pairingFailed === undefined) {
    const advice = `Log in once to connect it: open ${own} or run "latchkey pair ${appliance}"`;
    found.push(of('not_paired', 'info', `${appliance} is not paired yet`, advice));
  }
  if (pairingFailed !== undefined) {
    const { cause: why, advice: next } = explainPairingFailure(pairingFailed.reason, appliance, credentialLocation);
    const message = `The last pairing of ${appliance} failed: ${why}`;
    const severity = isUserCaused(pairingFailed.reason) ? 'info' : 'warning';
    found.push(of('pairing_failed', severity, message, capitalize(next), pairingFailed.at));
  }
  if (status.credentialsDamaged === true) {
    const message = `Nobody can ask for the tokens of ${appliance}, as its entry in the store was damaged, or changed by something other than the hub`;
    const advice = `Run "latchkey appliance remove ${appliance}", then add it again and pair it`;
    found.push(of('credentials_damaged', 'error', message, advice));
  } else if (withoutCredentials === true) {
    const message = `Nobody can ask for the tokens of ${appliance}, as the configuration declares it no longer`;
    const advice = `Declare it again, give it a secret ("latchkey appliance rotate-secret ${appliance}") or remove it ("latchkey appliance remove ${appliance}")`;
    found.push(of('without_credentials', 'warning', message, advice));
  }
  return found;
}

/** A sentence behind a colon. */
function uncapitalize(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
