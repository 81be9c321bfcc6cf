import fc from 'fast-check';
import { type LeaseScenario, QUIET } from './scenario.ts';

type Row = readonly [name: string, scenario: LeaseScenario];

export const ONE_FAULT = { ...QUIET, maxFaults: 1, maxAdvances: 1 };

/** A hub sends a refresh, and its answer comes. Then a standby is promoted that has lost commits. */
export const ANSWERED = ['A request', 'A call 1', 'A send 0', 'A response 0'];
const PROMOTION: LeaseScenario = {
  ...QUIET,
  faults: ['promotion'],
  maxFaults: 1,
  maxAdvances: 0,
  maxRequests: 2,
  maxLostCommits: 2,
};
const PROMOTION_AND_KILL: LeaseScenario = { ...PROMOTION, faults: ['promotion', 'kill'], maxFaults: 2 };
export const LOST_ATTEMPT: LeaseScenario = { ...PROMOTION, opening: [...ANSWERED, 'promote 1'] };
const LOST_TOKENS: LeaseScenario = { ...PROMOTION, opening: [...ANSWERED, 'A call 2', 'promote 1'] };
const LOST_BOTH: LeaseScenario = { ...PROMOTION, opening: [...ANSWERED, 'A call 2', 'promote 2'] };

/** A hub may send the refresh token of an import. */
const RESERVED = ['A import', 'A call 1', 'A call 2', 'A call 3'];
const IMPORT: LeaseScenario = { ...ONE_FAULT, maxAdvances: 0, maxImports: 1, opening: [...RESERVED, 'A send 0'] };
/** A hub has unpaired the connection, both know, and the other one imports a login. */
const UNPAIRED = ['A unpair', 'A call 1', 'A news', 'B news', 'B call 1', 'B import'];
/** The tokens of an import are stored, its hub has lost the database before it knows, and the other one refreshes them. */
const UNKNOWN = [
  ...[...RESERVED, 'A send 0', 'A response 0', 'A execute 4', 'A disconnect', 'B news', 'B call 1', 'B reject'],
  ...['B call 2', 'B call 3', 'B send 1', 'A return'],
];
/** An appliance of the other hub has reported a token, an import lets the news wait, and ends without the database. */
const NEWS = [
  'B reject',
  'B call 1',
  'A news',
  'A import',
  'A call 1',
  'A disconnect',
  'A return',
  'B call 2',
  'B call 3',
];
const UNPAIR: LeaseScenario = { ...ONE_FAULT, maxAdvances: 0, maxUnpairs: 1 };

/** Small enough that every state is visited in seconds. */
export const SHORT_SCENARIOS: readonly Row[] = [
  ['without faults, with late answers of the database', { ...QUIET, maxSlowAnswers: 1 }],
  ['with a request of an appliance', { ...QUIET, maxAdvances: 0, maxRequests: 1, maxSlowAnswers: 1 }],
  ['with requests at both hubs', { ...QUIET, maxAdvances: 0, maxRequests: 2 }],
  ['with a pause of a hub', { ...ONE_FAULT, faults: ['pause'], maxSlowAnswers: 1 }],
  ['with a hub that is killed', { ...ONE_FAULT, faults: ['kill'], opening: ['advance', 'A due', 'A call 1'] }],
  ['with a hub that loses the database', { ...ONE_FAULT, faults: ['disconnect'] }],
  ['with a lost answer', { ...ONE_FAULT, faults: ['lost_answer', 'unreachable'], maxAdvances: 2 }],
  ['with a pause between the check and the write', { ...ONE_FAULT, faults: ['late_write'], maxAdvances: 2 }],
  ['with a promotion that loses new tokens, and a request', LOST_TOKENS],
  ['with a promotion that loses an attempt and its tokens, and a request', LOST_BOTH],
  [
    'with a promotion that loses an attempt and its tokens, and a killed hub',
    { ...PROMOTION_AND_KILL, maxRequests: 1, opening: LOST_BOTH.opening ?? [] },
  ],
  [
    'with a promotion that loses an attempt and its tokens, and a late hub',
    { ...LOST_BOTH, maxAdvances: 1, maxRequests: 1 },
  ],
  [
    'with a promotion that loses an attempt under way',
    { ...PROMOTION, maxRequests: 1, opening: [...ANSWERED.slice(0, 3), 'promote 1'] },
  ],
  ['with an import', { ...QUIET, maxAdvances: 0, maxImports: 1 }],
  ['with an import, and a killed hub or a lost answer', { ...IMPORT, faults: ['kill', 'lost_answer'] }],
  [
    'with an import, and an unpairing at the other hub',
    { ...IMPORT, maxUnpairs: 1, opening: [...RESERVED, 'A send 0', 'B unpair', 'B call 1'] },
  ],
  [
    'with an import whose tokens are stored although that has failed',
    { ...IMPORT, faults: ['disconnect'], opening: UNKNOWN },
  ],
  ['with news before an import at a hub that loses the database', { ...IMPORT, faults: ['disconnect'], opening: NEWS }],
  ['with an import after an unpairing', { ...UNPAIR, maxImports: 1, opening: UNPAIRED }],
  [
    'with an unpairing during a refresh of the other hub',
    { ...UNPAIR, opening: [...ANSWERED.slice(0, 3), 'B unpair', 'B call 1'] },
  ],
  [
    'with an unpairing while the other hub has new tokens and no database',
    { ...UNPAIR, faults: ['disconnect'], opening: [...ANSWERED, 'A disconnect', 'B unpair', 'B call 1'] },
  ],
];
export const LONG_SCENARIOS: readonly Row[] = [
  ...SHORT_SCENARIOS,
  ['with a pause of a hub for longer than a lease', { ...ONE_FAULT, faults: ['pause'], maxAdvances: 2 }],
  ['with a pause, and a request', { ...ONE_FAULT, faults: ['pause'], maxRequests: 1 }],
  ['with a killed hub, and time for another refresh', { ...ONE_FAULT, faults: ['kill'], maxAdvances: 2 }],
  ['with a promotion that loses an attempt, and a request', LOST_ATTEMPT],
  ['with a promotion that loses two commits', { ...ONE_FAULT, faults: ['promotion'], maxLostCommits: 2 }],
  [
    'with a promotion that loses an attempt under way, and a request',
    { ...PROMOTION, opening: [...ANSWERED.slice(0, 3), 'promote 1'] },
  ],
  [
    'with a promotion that loses an attempt under way, and a killed hub',
    { ...PROMOTION_AND_KILL, maxRequests: 1, opening: [...ANSWERED.slice(0, 3), 'promote 1'] },
  ],
  ['with a promotion that loses new tokens, a request, and a late hub', { ...LOST_TOKENS, maxAdvances: 1 }],
  [
    'with a promotion that loses an attempt and its tokens, and a pause or another promotion',
    {
      ...LOST_BOTH,
      faults: ['promotion', 'pause'],
      maxFaults: 2,
      maxAdvances: 1,
      maxRequests: 1,
      maxLostCommits: 1,
    },
  ],
  ['with a lost answer, and requests', { ...ONE_FAULT, faults: ['lost_answer'], maxAdvances: 0, maxRequests: 2 }],
  ['with a late write, and a request', { ...ONE_FAULT, faults: ['late_write'], maxRequests: 1 }],
  ['with a rejected access token', { ...QUIET, maxAdvances: 0, maxRejections: 1 }],
];

/** Too large to visit every state. */
export const DEEP: LeaseScenario = {
  ...QUIET,
  faults: ['pause', 'kill', 'disconnect', 'promotion', 'lost_answer', 'unreachable', 'late_write'],
  maxFaults: 3,
  maxAdvances: 4,
  maxRequests: 3,
  maxRejections: 1,
  maxLostCommits: 2,
  maxSlowAnswers: 3,
};

/**
 * An import and an unpairing among them. Without a promotion: one that loses the commit of an unpairing brings the grant
 * back, and no hub knows what it knew of it.
 */
export const DEEP_WITH_COMMANDS: LeaseScenario = {
  ...DEEP,
  maxImports: 1,
  maxUnpairs: 1,
  faults: DEEP.faults.filter((fault) => fault !== 'promotion'),
};

/** Each choice takes one of the steps that are possible. */
export const CHOICES = fc.array(fc.nat({ max: 5039 }), { minLength: 60, maxLength: 60 });
