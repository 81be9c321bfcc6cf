import { rfc3339 } from '../clock.ts';
import { damagedConnectionAdvice } from '../connections/connection.ts';
import type { ConnectionStatus } from '../connections/connection-status.ts';
import { keysOf } from '../keys.ts';
import { capitalize, uncapitalize } from '../letter-case.ts';
import { type CredentialLocation, howToApplyCorrection } from '../portals/identity.ts';
import { explainPairingFailure, isUserCaused } from '../reports/pairing-failure.ts';
import type { ProblemCode, SpecificProblemCode } from '../reports/problem.ts';
import type { FoundCondition, SubjectConditionRecord } from './condition-record.ts';
import { HUB_CONDITIONS } from './hub-conditions.ts';

/** What the texts about a connection name. */
export interface ConnectionSubject {
  /** The connection's name, for commands. */
  readonly name: string;
  /** Its title. */
  readonly title: string;
  /** The connection at the beginning of a sentence: the title of its only appliance, or "The login TITLE". */
  readonly label: string;
  /** The address of its page. */
  readonly url: string;
  readonly portal: string;
  /** Where a person corrects the hub's credentials for its portal. */
  readonly credentialLocation: CredentialLocation;
}

/** A condition that follows from the problem of a grant, whose message says what is wrong. */
interface ProblemConditionRecord extends SubjectConditionRecord {
  /** What the problem means for the connection, which the message of the problem follows. */
  readonly consequence: string;
  readonly advice: (subject: ConnectionSubject) => string;
}

/** A condition that follows from the status of the connection in another way. */
interface StateConditionRecord extends SubjectConditionRecord {
  /** @param now the hub's wall clock, in ms since 1970. @returns null if the connection does not have it */
  readonly find: (status: ConnectionStatus, subject: ConnectionSubject, now: number) => FoundCondition | null;
}

/** The code of the condition that a problem becomes. */
type ProblemConditionCode = ProblemCode | SpecificProblemCode;

const waits = {
  severity: 'warning',
  group: 'retrying',
  notice: 'if_it_lasts',
  consequence: 'waits for a new token',
} as const;
const endedLogin = { severity: 'error', notice: 'pairing_needed', consequence: 'is no longer connected' } as const;

/** The conditions that the problem of a grant becomes, by their codes. */
export const PROBLEM_CONDITIONS: Readonly<Record<ProblemConditionCode, ProblemConditionRecord>> = {
  portal_unreachable: {
    ...waits,
    advice: () => "Check the hub's internet connection; the hub keeps trying",
    statusLine: (portal) => `portal ${portal} unreachable`,
  },
  portal_deferred: {
    ...waits,
    advice: () => 'There is nothing to do: the hub tries again when the portal allows it',
    statusLine: (portal) => `portal ${portal} asked the hub to wait`,
  },
  portal_rejected: {
    ...waits,
    advice: () =>
      "Check the portal's addresses in the configuration and any proxy or firewall on the way; the hub keeps trying",
  },
  answer_lost: {
    ...waits,
    consequence: 'may have to be connected again',
    // Not "latchkey refresh": each further use of the old refresh token may make the portal end the grant.
    advice: () =>
      'Nothing yet: the hub tries again at the time that is safest for the grant, and reports if somebody must log in',
  },
  misconfigured: {
    severity: 'error',
    group: 'needs attention',
    notice: 'misconfigured',
    consequence: 'gets no new tokens',
    advice: ({ credentialLocation }) =>
      `Compare both with those of the portal, correct the wrong one, and ${howToApplyCorrection(credentialLocation)}`,
    statusLine: (portal) => `portal ${portal} refuses the hub's credentials`,
  },
  clock_unknown: {
    ...waits,
    advice: () => 'Check with "timedatectl status" that the clock is set automatically; the hub keeps trying',
    statusLine: () => 'clock not confirmed',
  },
  store_unwritable: {
    severity: 'error',
    group: 'needs attention',
    notice: 'of_hub',
    consequence: 'gets no new tokens',
    advice: () => HUB_CONDITIONS.store_unwritable.advice,
  },
  database_unavailable: { ...waits, notice: 'of_hub', advice: () => HUB_CONDITIONS.database_unavailable.advice },
  refused: { ...endedLogin, group: 'needs pairing', advice: adviceToLogIn },
  access_token_rejected: {
    ...waits,
    advice: () =>
      'There is nothing to do: the hub replaces a reported token at most once a minute. If the portal rejects the new ones as well, check the account and its permissions at the portal',
  },
  credentials_untried: {
    ...waits,
    advice: () => 'Nothing yet: the hub will know within seconds whether the portal accepts its credentials',
  },
  portal_changed: {
    ...endedLogin,
    group: 'needs attention',
    advice: (subject) =>
      `If this change was not intended, revert portals.${subject.portal} and run "latchkey reload"; otherwise ${uncapitalize(adviceToLogIn(subject))}`,
    statusLine: (portal) => `portal ${portal} is not the portal of the pairing`,
  },
  portal_missing: {
    severity: 'error',
    group: 'needs attention',
    notice: 'portal_missing',
    consequence: 'gets no new tokens',
    advice: ({ portal }) =>
      `Add portals.${portal} to the configuration again and run "latchkey reload", or enter its data with "latchkey portal add ${portal}"`,
    statusLine: (portal) => `portal ${portal} is not in the configuration`,
  },
  grant_damaged: { ...endedLogin, group: 'needs pairing', advice: adviceToLogIn },
  connection_damaged: { ...endedLogin, group: 'needs attention', advice: ({ name }) => damagedConnectionAdvice(name) },
};

/** A pairing is open, and nothing is wrong. */
const pairing = { severity: 'info', group: 'pairing', notice: null } as const;

const stateRecords = {
  portal_awaited: {
    ...pairing,
    find: ({ problem, state, authorizeUrl }, { label, url }) =>
      problem !== null || state !== 'pairing' || authorizeUrl !== undefined
        ? null
        : {
            message: `${label} waits for the portal's response`,
            advice: `There is nothing to do: the hub keeps asking, and ${url} shows the login link as soon as the portal gives one`,
          },
  },
  login_open: {
    ...pairing,
    find: ({ problem, state, authorizeUrl }, { label, url }) =>
      problem !== null || state !== 'pairing' || authorizeUrl === undefined
        ? null
        : { message: `${label} waits for the login`, advice: `Log in with the link that ${url} shows` },
  },
  not_paired: {
    severity: 'info',
    group: 'unpaired',
    notice: null,
    find: ({ problem, state, pairingFailed }, { name, label, url }) =>
      problem !== null || state !== 'unpaired' || pairingFailed !== undefined
        ? null
        : {
            message: `${label} is not paired yet`,
            advice: `Log in once to connect it: open ${url} or run "latchkey pair ${name}"`,
          },
  },
  login_ending: {
    severity: 'warning',
    group: 'needs attention',
    notice: 'login_ending',
    find({ state, loginEnds, loginEndingSince: since, withoutRefreshToken }, { name, title, label, url }) {
      if (since === undefined || state === 'needs_pairing') return null;
      const end =
        withoutRefreshToken === true
          ? 'when its access token ends; the portal gave no refresh token: ask for offline_access'
          : 'when its login ends';
      const first = withoutRefreshToken === true ? `Add offline_access to the scope of ${title}, then log` : 'Log';
      return {
        message: `${label} must be connected again before ${loginEnds}, ${end}`,
        advice: `${first} in again before then: open ${url} or run "latchkey pair ${name}"`,
        since,
      };
    },
  },
  permissions_missing: {
    severity: 'warning',
    group: 'needs attention',
    notice: 'permissions_missing',
    find({ missingScope, lastRefresh }, { name, title, label, url }, now) {
      if (missingScope === undefined) return null;
      const missing = `${missingScope.join(', ')} ${missingScope.length === 1 ? 'is' : 'are'} missing`;
      return {
        message: `${label} is connected, but the portal did not grant all permissions that were asked for: ${missing}`,
        advice: `If ${title} needs them, log in again and allow them: open ${url} or run "latchkey pair ${name}"`,
        since: lastRefresh ?? rfc3339(now),
      };
    },
  },
  pairing_failed: {
    // The person who started the pairing sees that it failed.
    severity: 'warning',
    group: 'needs attention',
    notice: null,
    find({ pairingFailed }, { name, title, credentialLocation }) {
      if (pairingFailed === undefined) return null;
      const { reason, detail, at } = pairingFailed;
      const { cause, advice } = explainPairingFailure(reason, name, credentialLocation, detail);
      return {
        message: `The last pairing of ${title} failed: ${cause}`,
        advice: capitalize(advice),
        since: at,
        ...(isUserCaused(reason) && { severity: 'info' }),
      };
    },
  },
} satisfies Readonly<Record<string, StateConditionRecord>>;

/** The other conditions of a connection, by their codes. */
export const STATE_CONDITIONS: Readonly<Record<keyof typeof stateRecords, StateConditionRecord>> = stateRecords;

export type ConnectionConditionCode = ProblemConditionCode | keyof typeof stateRecords;

/** Every condition of a connection, by its code. */
export const CONNECTION_CONDITIONS: Readonly<Record<ConnectionConditionCode, SubjectConditionRecord>> = {
  ...PROBLEM_CONDITIONS,
  ...STATE_CONDITIONS,
};

export const CONNECTION_CONDITION_CODES = keysOf(CONNECTION_CONDITIONS);

function adviceToLogIn({ name, title, url }: ConnectionSubject): string {
  return `Log in again to connect ${title}: open ${url} or run "latchkey pair ${name}"`;
}
