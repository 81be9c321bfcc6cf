import type { SubjectNoticeCode } from './notice.ts';

/**
 * How severe a condition is, the most severe first. If all is well, there is no condition.
 *
 * - `error`: something is broken, and stays broken until a person acts;
 * - `warning`: a problem that may resolve itself, or something that a person is asked to do and that breaks nothing yet;
 * - `info`: nothing is wrong, but appliances get no tokens until somebody logs in for the first time, or the way in which
 *   an appliance uses its tokens, or does not, is pointed out.
 */
export const SEVERITIES = ['error', 'warning', 'info'] as const;
export type ConditionSeverity = (typeof SEVERITIES)[number];

/**
 * How surfaces count the appliances by their most severe condition, in the order and the words of systemd's status line.
 * `active` is also the group of an appliance without a condition.
 */
export const GROUPS = [
  'active',
  'retrying',
  'pairing',
  'needs pairing',
  'needs attention',
  'waits for approval',
  'unpaired',
] as const;
export type ConditionGroup = (typeof GROUPS)[number];

/**
 * What is the same for every condition with one code about a connection or an appliance. The page has its texts in
 * `page/texts/`, by the same code.
 */
export interface SubjectConditionRecord {
  readonly severity: ConditionSeverity;
  readonly group: ConditionGroup;
  /**
   * The notice that is sent at once. `if_it_lasts`: one about refreshes, after they have failed for some time. `of_hub`:
   * the hub itself has a notice about it, and the connection none. Null: no notice, and a less severe condition may have
   * one.
   */
  readonly notice: SubjectNoticeCode | 'if_it_lasts' | 'of_hub' | null;
  /** It only points something out: surfaces show that all is well. Left out if they do not. */
  readonly isHarmless?: true;
  /** For systemd's status line: why grants of this portal wait; left out if the group says enough. */
  readonly statusLine?: (portal: string) => string;
}

/** The details of a condition: one sentence each, in English, without a full stop. */
export interface FoundCondition {
  readonly message: string;
  readonly advice: string;
  /** RFC 3339 UTC; left out if it has no beginning. */
  readonly since?: string | null;
  /** If it differs from the severity of its code. */
  readonly severity?: ConditionSeverity;
}
