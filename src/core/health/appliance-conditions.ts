import type { ApplianceStatus } from '../appliances/appliance-status.ts';
import { keysOf } from '../keys.ts';
import type { FoundCondition, SubjectConditionRecord } from './condition-record.ts';

/** A condition of an appliance. */
interface ApplianceConditionRecord extends SubjectConditionRecord {
  /** @param url the address of the appliance's page. @returns null if the appliance does not have it */
  readonly find: (status: ApplianceStatus, url: string) => FoundCondition | null;
}

/** What is only pointed out about an appliance whose connection is fine. */
const usage = { severity: 'info', group: 'active', notice: null } as const;

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
  appliance_silent: {
    ...usage,
    find: ({ name, title, unusualUsage, lastToken }) =>
      unusualUsage !== 'silent'
        ? null
        : {
            message: `${title} has not requested a token for a week or longer, although it could get one`,
            advice: `Check whether ${title} is switched on and still uses this hub; if you no longer have it, run "latchkey appliance remove ${name}"`,
            since: lastToken,
          },
  },
  appliance_asks_often: {
    ...usage,
    find: ({ title, unusualUsage }) =>
      unusualUsage !== 'asks_often'
        ? null
        : {
            message: `${title} requests tokens more than a hundred times as often as they expire`,
            advice:
              'Nothing: the hub serves it as usual; its maker can let it keep each token until shortly before it expires (expires_in)',
          },
  },
} satisfies Readonly<Record<string, ApplianceConditionRecord>>;

export type ApplianceConditionCode = keyof typeof records;

/** Every condition of an appliance, by its code. An appliance has at most one: the first that it has. */
export const APPLIANCE_CONDITIONS: Readonly<Record<ApplianceConditionCode, ApplianceConditionRecord>> = records;

export const APPLIANCE_CONDITION_CODES = keysOf(APPLIANCE_CONDITIONS);
