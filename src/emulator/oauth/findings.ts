import * as v from 'valibot';
import type { EmulatedPortal } from '../portal.ts';
import { CLIENT_AUTHENTICATION_METHODS } from './client-audit.ts';
import type { HelperFlow } from './helper-flows.ts';

/** One kind of misuse of one grant, and how often it happened. */
const GrantFinding = v.strictObject({
  client: v.string(),
  /** The grant's ID. */
  grant: v.string(),
  count: v.number(),
  /** The finding as a sentence. */
  message: v.string(),
});
export type GrantFinding = Readonly<v.InferOutput<typeof GrantFinding>>;

const EarlyRefreshes = v.strictObject({
  ...GrantFinding.entries,
  earliest: v.pipe(v.number(), v.description('Age of the tokens at the earliest of these refreshes, in seconds')),
});
export type EarlyRefreshes = Readonly<v.InferOutput<typeof EarlyRefreshes>>;

const FailedAuthentications = v.strictObject({
  /** The registered client that the requests named, or null if they named none. */
  client: v.nullable(v.string()),
  way: v.picklist(CLIENT_AUTHENTICATION_METHODS),
  count: v.number(),
  message: v.string(),
});
export type FailedAuthentications = Readonly<v.InferOutput<typeof FailedAuthentications>>;

/** Polls of one client with device codes that came before the interval was over. */
const FastPolls = v.strictObject({ client: v.string(), count: v.number(), message: v.string() });
export type FastPolls = Readonly<v.InferOutput<typeof FastPolls>>;

/** Null if there was only one poll. */
const intervalSchema = () => v.pipe(v.nullable(v.number()), v.description('Seconds'));

/** How a client polled for one code. */
export const PollFindings = v.strictObject({
  client: v.string(),
  state: v.pipe(v.string(), v.description('The ID of the state')),
  /** The number of polls; at most 1000, because older ones are not kept. */
  count: v.number(),
  shortestInterval: intervalSchema(),
  medianInterval: intervalSchema(),
  longestInterval: intervalSchema(),
  afterCode: v.pipe(v.number(), v.description('Polls after the one that returned the code')),
  message: v.string(),
});
export type PollFindings = Readonly<v.InferOutput<typeof PollFindings>>;

/**
 * What clients did wrong, and how they polled. For a correct client every list except `polls` is empty. An early
 * refresh comes before half of the access token's lifetime has passed, although the token was not revoked.
 */
export const Findings = v.strictObject({
  reusedRefreshTokens: v.array(GrantFinding),
  repeatedCodes: v.array(GrantFinding),
  overlappingRefreshes: v.array(GrantFinding),
  earlyRefreshes: v.array(EarlyRefreshes),
  failedAuthentications: v.array(FailedAuthentications),
  fastPolls: v.array(FastPolls),
  polls: v.array(PollFindings),
});
export type Findings = Readonly<v.InferOutput<typeof Findings>>;

/** Flows whose polls are reported: the newest. */
const MAX_FLOWS = 1_000;

export function collectFindings({ audit, helperFlows }: EmulatedPortal): Findings {
  const ofGrants = (what: 'reused' | 'codeRepeated' | 'overlapping', sentence: (times: string) => string) =>
    audit
      .records(what)
      .map(({ misuse: { client, grant }, count }) => ({ client, grant, count, message: sentence(formatTimes(count)) }));
  return {
    reusedRefreshTokens: ofGrants(
      'reused',
      (times) => `A used refresh token was presented again, ${times}. Many portals then revoke the grant.`,
    ),
    repeatedCodes: ofGrants(
      'codeRepeated',
      (times) =>
        `A code was presented again after its exchange, ${times}. The grant of the first exchange was revoked.`,
    ),
    overlappingRefreshes: ofGrants(
      'overlapping',
      (times) => `A refresh began before another refresh of the same grant was answered, ${times}.`,
    ),
    earlyRefreshes: audit.records('early').map(({ misuse: { client, grant }, count, earliest }) => {
      const message = `Tokens were refreshed before half of their lifetime had passed, ${formatTimes(count)}; the earliest refresh was ${earliest} s after their issue.`;
      return { client, grant, count, earliest, message };
    }),
    failedAuthentications: audit.records('notAuthenticated').map(({ misuse: { client, way }, count, reason }) => ({
      client,
      way,
      count,
      message: `Client authentication failed (${client ?? 'no registered client'}; credentials: ${way}), ${formatTimes(count)}${reason === undefined ? '' : `: ${reason}`}.`,
    })),
    fastPolls: audit.records('fastPoll').map(({ misuse: { client }, count }) => ({
      client,
      count,
      message: `A device code was polled before the interval was over, ${formatTimes(count)}. The answer was slow_down.`,
    })),
    polls: helperFlows
      .all()
      .slice(-MAX_FLOWS)
      .flatMap((flow) => pollFindings(flow) ?? []),
  };
}

function pollFindings({ state, polls: all }: HelperFlow): PollFindings | null {
  if (all.length === 0) return null;
  const intervals = all.slice(1).map((poll, index) => (poll.at - (all[index]?.at ?? 0)) / 1000);
  const sorted = intervals.toSorted((a, b) => a - b);
  const code = all.findIndex(({ status }) => status === 200);
  const [shortest, median, longest] = [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  const afterCode = code === -1 ? 0 : all.length - code - 1;
  const interval = median === undefined ? '' : `, every ${median} s (${shortest} to ${longest} s)`;
  return {
    client: state.clientId,
    state: state.id,
    count: all.length,
    shortestInterval: shortest ?? null,
    medianInterval: median ?? null,
    longestInterval: longest ?? null,
    afterCode,
    message: `The code_url was polled ${formatTimes(all.length)}${interval}; ${afterCode === 0 ? 'never' : formatTimes(afterCode)} after it had returned the code. The recommended interval is 5 to 10 s.`,
  };
}

function formatTimes(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
