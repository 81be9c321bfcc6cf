import type { HelperRun } from '../oauth/helper-runs.ts';
import type { Portal } from '../portal.ts';
import type { AuthenticationWay, GrantNotes } from './client-audit.ts';

/** One thing that happened to one grant, and how often. */
export interface GrantFinding {
  readonly client: string;
  /** The grant's id. */
  readonly grant: string;
  readonly count: number;
  /** The same as a sentence. */
  readonly message: string;
}

/** Refreshes long before they were due. */
export interface EarlyRefreshes extends GrantFinding {
  /** Seconds after the issue of the tokens that the earliest one came. */
  readonly earliest: number;
}

/** Client authentications that failed, of one client in one way. */
export interface FailedAuthentications {
  /** The registered client that was named, or null where none was. */
  readonly client: string | null;
  readonly way: AuthenticationWay;
  readonly count: number;
  readonly message: string;
}

/** How a client polled for one code. Intervals are in seconds, null while there was one poll only. */
export interface PollFindings {
  readonly client: string;
  /** The id of the state. */
  readonly state: string;
  /** Polls (of the newest 1000). */
  readonly count: number;
  readonly shortestInterval: number | null;
  readonly medianInterval: number | null;
  readonly longestInterval: number | null;
  /** Polls after the one that brought the code. */
  readonly afterCode: number;
  readonly message: string;
}

/**
 * What the author of a client wants to know after a test: every list but `polls` is empty for a good client. An early
 * refresh is one before half of the access token's lifetime had passed, with the token not revoked.
 */
export interface Findings {
  readonly reusedRefreshTokens: readonly GrantFinding[];
  readonly repeatedCodes: readonly GrantFinding[];
  readonly overlappingRefreshes: readonly GrantFinding[];
  readonly earlyRefreshes: readonly EarlyRefreshes[];
  readonly failedAuthentications: readonly FailedAuthentications[];
  readonly polls: readonly PollFindings[];
}

/** Runs whose polls are looked at: the newest. */
const MAX_RUNS = 1_000;

/** What clients did so far. */
export function findings({ audit, runs }: Portal): Findings {
  const grants = audit.grants();
  return {
    reusedRefreshTokens: counted(
      grants,
      (notes) => notes.reused,
      (times) => `A refresh token that had been used came again, ${times}: many portals then revoke the grant.`,
    ),
    repeatedCodes: counted(
      grants,
      (notes) => notes.codeRepeated,
      (times) => `A code that had been exchanged came again, ${times}, and the grant it gave was revoked.`,
    ),
    overlappingRefreshes: counted(
      grants,
      (notes) => notes.overlapping,
      (times) => `A refresh began before another one of the same grant was answered, ${times}.`,
    ),
    earlyRefreshes: grants.flatMap(({ client, grant, early, earliest }) => {
      if (earliest === null) return [];
      const message = `Tokens were refreshed before half of their lifetime had passed, ${often(early)}; the earliest time after ${earliest} s.`;
      return [{ client, grant, count: early, earliest, message }];
    }),
    failedAuthentications: audit.authentications().map(({ client, way, count }) => ({
      client,
      way,
      count,
      message: `Client authentication failed (${client ?? 'no registered client'}; credentials: ${way}), ${often(count)}.`,
    })),
    polls: runs
      .all()
      .slice(-MAX_RUNS)
      .flatMap((run) => polled(run) ?? []),
  };
}

function counted(
  grants: readonly GrantNotes[],
  count: (notes: GrantNotes) => number,
  sentence: (times: string) => string,
): GrantFinding[] {
  return grants
    .filter((notes) => count(notes) > 0)
    .map((notes) => ({
      client: notes.client,
      grant: notes.grant,
      count: count(notes),
      message: sentence(often(count(notes))),
    }));
}

function polled({ state, polls }: HelperRun): PollFindings | null {
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
    message: `The code_url was polled ${often(all.length)}${every}; ${afterCode === 0 ? 'not once' : often(afterCode)} after it gave the code. The specification asks for 5 to 10 s.`,
  };
}

function often(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
