import type { FailureReason } from './pairing.ts';
import type { ProblemCode } from './problem.ts';

/** A line of an appliance's history; alike ones that follow each other on one day are one line. Instants in RFC 3339 UTC. */
export interface HistoryEntry {
  readonly kind: 'paired' | 'pairing_failed' | 'unpaired' | 'refreshed' | 'refresh_failed' | 'token_refused';
  /** Why, for what failed; null otherwise. */
  readonly why: FailureReason | ProblemCode | null;
  /** When it happened first, and last. */
  readonly first: string;
  readonly last: string;
  /** How often. */
  readonly count: number;
}

/** What is remembered of appliances. */
export interface Histories {
  /** The newest line first. @throws Failure `appliance_unknown` */
  history(name: string): Promise<readonly HistoryEntry[]>;
}
