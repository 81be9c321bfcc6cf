import type { ApplianceStatus } from '../appliances/appliance-status.ts';
import { keysOf } from '../keys.ts';
import type { FoundCondition, SubjectConditionRecord } from './condition-record.ts';

/** A condition of an appliance. */
interface ApplianceConditionRecord extends SubjectConditionRecord {
  /** @param url the address of the appliance's page. @returns null if the appliance does not have it */
  readonly find: (status: ApplianceStatus, url: string) => FoundCondition | null;
}

/** What is pointed out about an appliance whose connection is fine. */
const usage = { severity: 'info', group: 'active', notice: null } as const;

/** From so many refused requests on, somebody should look: one may be a mistake while the appliance is set up. */
const MANY_REFUSALS = 3;

const records = {
  approval_needed: {
    severity: 'warning',
    group: 'waits for approval',
    notice: 'approval_needed',
    find({ name, title, waitingForApproval }, url) {
      if (waitingForApproval === undefined) return null;
      const { comparisonCode: code, address, since } = waitingForApproval;
      return {
        message: `${title} has registered itself from ${address} with the code ${code}, and waits for an installer's approval`,
        advice: `If it is yours and shows the same code, approve it at ${url} or run "latchkey appliance approve ${name} --code ${code}"; if it is not yours, remove it there`,
        since,
      };
    },
  },
  credentials_damaged: {
    // The hub reports those of all appliances together, as `store_changed`.
    severity: 'error',
    group: 'needs attention',
    notice: null,
    find: ({ name, title, credentialsDamaged }) =>
      credentialsDamaged === undefined
        ? null
        : {
            message: `${title} gets no tokens, because its entry in the store was damaged, or something other than the hub changed it`,
            advice: `Run "latchkey appliance remove ${name}", then add it again and pair it`,
          },
  },
  without_credentials: {
    // The configuration is what has changed.
    severity: 'warning',
    group: 'needs attention',
    notice: null,
    find: ({ name, title, withoutCredentials }) =>
      withoutCredentials === undefined
        ? null
        : {
            message: `${title} gets no tokens, because it is no longer in the configuration`,
            advice: `Add it to the configuration again, give it a secret ("latchkey appliance rotate-secret ${name}") or remove it ("latchkey appliance remove ${name}")`,
          },
  },
  appliance_refused: {
    // Anybody on the network can send such requests, so they lead to no notice.
    severity: 'warning',
    group: 'needs attention',
    notice: null,
    find(status, url) {
      const { title, refused } = status;
      if (refused === undefined) return null;
      const { address, reason, since, count } = refused;
      return {
        message: `The hub refuses the requests for ${title} from ${address}: ${reason}`,
        advice: `If ${title} has this address, enter its credentials there again${ifSecretIsLost(status, url)}`,
        since,
        ...(count < MANY_REFUSALS && { severity: 'info' }),
      };
    },
  },
  appliance_never_served: {
    ...usage,
    find(status, url) {
      const { title, unusualUsage, unusualConnection } = status;
      if (unusualUsage !== 'never_served') return null;
      if (unusualConnection !== undefined) {
        return {
          message: `${subject(status)} has not got a token yet, although it could get one`,
          advice: `Let ${title} use the address of this connection, or take the connection away from it ("latchkey appliance move")`,
        };
      }
      return {
        message: `${title} has not got a token yet, although it could get one`,
        advice: `Enter its credentials and the address of the hub in ${title}, and switch it on${ifSecretIsLost(status, url)}`,
      };
    },
  },
  appliance_silent: {
    ...usage,
    find: ({ name, title, unusualUsage, lastToken, ...status }) =>
      unusualUsage !== 'silent'
        ? null
        : {
            message: `${subject({ title, ...status })} has not requested a token for a week or longer, although it could get one`,
            advice: `Check whether ${title} is switched on and still uses this hub; if you no longer have it, run "latchkey appliance remove ${name}"`,
            since: status.unusualConnection === undefined ? lastToken : null,
          },
  },
  appliance_asks_often: {
    ...usage,
    isHarmless: true,
    find: ({ unusualUsage, ...status }) =>
      unusualUsage !== 'asks_often'
        ? null
        : {
            message: `${subject(status)} requests tokens more than a hundred times as often as they expire`,
            advice:
              'There is nothing to do: the hub serves it as usual; its maker can let it keep each token until shortly before it expires (expires_in)',
          },
  },
} satisfies Readonly<Record<string, ApplianceConditionRecord>>;

/** What a message is about: an appliance or, if it uses several, its use of one connection. */
function subject({ title, unusualConnection }: Pick<ApplianceStatus, 'title' | 'unusualConnection'>): string {
  return unusualConnection === undefined ? title : `${title} (${unusualConnection})`;
}

/** Part of an advice. That of a declared appliance is where the configuration says. */
function ifSecretIsLost({ name, declared }: ApplianceStatus, url: string): string {
  if (declared) return '';
  return `; if its secret or key is lost, give it a new secret: open ${url} or run "latchkey appliance rotate-secret ${name}"`;
}

export type ApplianceConditionCode = keyof typeof records;

/** Every condition of an appliance, by its code. An appliance has at most one: the first that it has. */
export const APPLIANCE_CONDITIONS: Readonly<Record<ApplianceConditionCode, ApplianceConditionRecord>> = records;

export const APPLIANCE_CONDITION_CODES = keysOf(APPLIANCE_CONDITIONS);
