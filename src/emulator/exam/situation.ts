import type { Verdict } from './judgement.ts';
import type { Flow, Setup } from './setup.ts';
import type { Sitting } from './sitting.ts';

/** What a situation is about, in the order of the report. */
export const GROUPS = [
  'rotation',
  'faults',
  'ends',
  'storage',
  'client-authentication',
  'code-flow',
  'openid',
  'device-flow',
  'mcp',
] as const;
export type Group = (typeof GROUPS)[number];

/** The flow of each group. Its situations apply to a client that uses this flow. */
export const FLOW_OF: Readonly<Record<Group, Flow>> = {
  rotation: 'refresh',
  faults: 'refresh',
  ends: 'refresh',
  storage: 'refresh',
  'client-authentication': 'refresh',
  'code-flow': 'code',
  openid: 'code',
  'device-flow': 'device',
  mcp: 'mcp',
};

/** Something that happens to a client, and what a right client does then. */
export interface Situation extends GroupSituation {
  readonly group: Group;
}

export interface GroupSituation extends Setup {
  /** In kebab-case, unique among all situations. */
  readonly name: string;
  /** What a right client does, as a sentence without its end. */
  readonly right: string;
  /** The section of the standard, and its sentence. */
  readonly source: string;
  /**
   * Lets it happen to a client that was just started.
   * @returns what was seen of a client that is right
   * @throws Judgement otherwise
   */
  readonly happens: (sitting: Sitting) => Promise<string>;
}

/** The result of a situation, as in the report. */
export interface ExamResult {
  readonly name: string;
  readonly group: Group;
  readonly verdict: Verdict;
  /** What was seen on the wire. */
  readonly seen: string;
  /** What a right client does. */
  readonly right: string;
  readonly source: string;
}
