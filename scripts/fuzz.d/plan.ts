import type { Dice } from './dice.ts';

/** Where a request goes: an origin of the emulator's, or a port of the hub's. */
export type Origin = 'base' | 'frontend' | 'http' | 'https';

/** A request before HTTP. */
export interface Plan {
  readonly origin: Origin;
  readonly method: string;
  readonly path: string;
  readonly heads: readonly string[];
  readonly body?: string;
  /** It says who sends it in a way that nobody may believe: no good answer is right. */
  readonly forged?: boolean;
}

/** What one request is to be; a good one has nothing wrong in it, so that what lies behind the checks is reached. */
export type Planner = (dice: Dice, good: boolean) => Plan;

export const FORM = 'Content-Type: application/x-www-form-urlencoded';
export const JSON_TYPE = 'Content-Type: application/json';
