import * as v from 'valibot';
import type { HelperFlow } from '../oauth/helper-flows.ts';
import type { EmulatedPortal } from '../portal.ts';
import { CLIENT_AUTHENTICATION_METHODS, type GrantAuditRecord } from './client-audit.ts';

/** One thing that happened to one grant, and how often. */
const GrantFinding = v.strictObject({
  client: v.string(),
  /** The grant's id. */
  grant: v.string(),
  count: v.number(),
  /** The same as a sentence. */
  message: v.string(),
});
export type GrantFinding = Readonly<v.InferOutput<typeof GrantFinding>>;

/** Refreshes long before they were due. */
const EarlyRefreshes = v.strictObject({
  ...GrantFinding.entries,
  /** That the earliest one came. */
  earliest: v.pipe(v.number(), v.description('Seconds after the issue of the tokens')),
});
export type EarlyRefreshes = Readonly<v.InferOutput<typeof EarlyRefreshes>>;

/** Client authentications that failed, of one client in one way. */
const FailedAuthentications = v.strictObject({
  /** The registered client that was named, or null where none was. */
  client: v.nullable(v.string()),
  way: v.picklist(CLIENT_AUTHENTICATION_METHODS),
  count: v.number(),
  message: v.string(),
});
export type FailedAuthentications = Readonly<v.InferOutput<typeof FailedAuthentications>>;

/** Null while there was one poll only. */
const intervalSchema = () => v.pipe(v.nullable(v.number()), v.description('Seconds'));

/** How a client polled for one code. */
export const PollFindings = v.strictObject({
  client: v.string(),
  state: v.pipe(v.string(), v.description('The id of the state')),
  /** Polls (of the newest 1000). */
  count: v.number(),
  shortestInterval: intervalSchema(),
  medianInterval: intervalSchema(),
  longestInterval: intervalSchema(),
  afterCode: v.pipe(v.number(), v.description('Polls after the one that brought the code')),
  message: v.string(),
});
export type PollFindings = Readonly<v.InferOutput<typeof PollFindings>>;

/**
 * What the author of a client wants to know after a test: every list but `polls` is empty for a good client. An early
 * refresh is one before half of the access token's lifetime had passed, with the token not revoked.
 */
export const Findings = v.strictObject({
  reusedRefreshTokens: v.array(GrantFinding),
  repeatedCodes: v.array(GrantFinding),
  overlappingRefreshes: v.array(GrantFinding),
  earlyRefreshes: v.array(EarlyRefreshes),
  failedAuthentications: v.array(FailedAuthentications),
  polls: v.array(PollFindings),
});
export type Findings = Readonly<v.InferOutput<typeof Findings>>;

/** Runs whose polls are looked at: the newest. */
const MAX_RUNS = 1_000;

/** What clients did so far. */
export function collectFindings({ audit, helperFlows: runs }: EmulatedPortal): Findings {
  const grants = audit.grants();
  return {
    reusedRefreshTokens: grantFindings(
      grants,
      (notes) => notes.reused,
      (times) => `A refresh token that had been used came again, ${times}: many portals then revoke the grant.`,
    ),
    repeatedCodes: grantFindings(
      grants,
      (notes) => notes.codeRepeated,
      (times) => `A code that had been exchanged came again, ${times}, and the grant it gave was revoked.`,
    ),
    overlappingRefreshes: grantFindings(
      grants,
      (notes) => notes.overlapping,
      (times) => `A refresh began before another one of the same grant was answered, ${times}.`,
    ),
    earlyRefreshes: grants.flatMap(({ client, grant, early, earliest }) => {
      if (earliest === null) return [];
      const message = `Tokens were refreshed before half of their lifetime had passed, ${formatTimes(early)}; the earliest time after ${earliest} s.`;
      return [{ client, grant, count: early, earliest, message }];
    }),
    failedAuthentications: audit.failedAuthentications().map(({ client, way, count }) => ({
      client,
      way,
      count,
      message: `Client authentication failed (${client ?? 'no registered client'}; credentials: ${way}), ${formatTimes(count)}.`,
    })),
    polls: runs
      .all()
      .slice(-MAX_RUNS)
      .flatMap((run) => pollFindings(run) ?? []),
  };
}

function grantFindings(
  grants: readonly GrantAuditRecord[],
  count: (notes: GrantAuditRecord) => number,
  sentence: (times: string) => string,
): GrantFinding[] {
  return grants
    .filter((notes) => count(notes) > 0)
    .map((notes) => ({
      client: notes.client,
      grant: notes.grant,
      count: count(notes),
      message: sentence(formatTimes(count(notes))),
    }));
}

function pollFindings({ state, polls }: HelperFlow): PollFindings | null {
  const all = polls.values();
  if (all.length === 0) return null;
  const intervals = all.slice(1).map((poll, index) => (poll.at - (all[index]?.at ?? 0)) / 1000);
  const sorted = intervals.toSorted((a, b) => a - b);
  const code = all.findIndex(({ status }) => status === 200);
  const [shortest, median, longest] = [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  const afterCode = code === -1 ? 0 : all.length - code - 1;
  const every = median === undefined ? '' : `, every ${median} s (${shortest} to ${longest} s)`;
  return {
    client: state.clientId,
    state: state.id,
    count: all.length,
    shortestInterval: shortest ?? null,
    medianInterval: median ?? null,
    longestInterval: longest ?? null,
    afterCode,
    message: `The code_url was polled ${formatTimes(all.length)}${every}; ${afterCode === 0 ? 'not once' : formatTimes(afterCode)} after it gave the code. The specification asks for 5 to 10 s.`,
  };
}

function formatTimes(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
