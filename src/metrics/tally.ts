import type { TokenResult } from '../core/grants/token-result.ts';
import type { FailureReason } from '../core/pairings/pairing.ts';
import type { HubEvent } from '../core/reports/hub-event.ts';
import type { ProblemCode } from '../core/reports/problem.ts';
import { Durations } from './durations.ts';

/** How often there was what; a map for each of thousands of appliances would hold three times as much. */
type Counts<Outcome extends string> = { [Name in Outcome]?: number };

/** What was counted of one appliance. */
export interface ApplianceTally {
  readonly refreshes: Counts<'refreshed' | ProblemCode>;
  readonly handOuts: Counts<TokenResult['kind']>;
  readonly pairings: Counts<'paired' | FailureReason>;
  refusedTokens: number;
}

/** Appliances that are counted at most; those that were heard of first give way. */
const MOST = 10_000;

/** Counts what happens, in memory alone, for as long as the daemon runs. */
export class Tally {
  readonly #appliances = new Map<string, ApplianceTally>();
  /** How long the portal took to answer a refresh, or the hub to give an answer up. */
  readonly answers = new Durations();

  /** Takes what happened to an appliance. */
  readonly tell = (event: HubEvent): void => {
    const { refreshes, pairings } = this.of(event.appliance);
    switch (event.kind) {
      case 'refreshed':
        increase(refreshes, 'refreshed');
        this.answers.took(event.took);
        break;
      case 'refresh_failed':
        increase(refreshes, event.problem);
        if (event.took !== null) this.answers.took(event.took);
        break;
      case 'paired':
        increase(pairings, 'paired');
        break;
      case 'pairing_failed':
        increase(pairings, event.reason);
        break;
      case 'token_refused':
        this.of(event.appliance).refusedTokens += 1;
        break;
      case 'unpaired':
        break;
    }
  };

  /** An appliance was answered when it asked for its token. @param appliance its id */
  handedOut(appliance: string, kind: TokenResult['kind']): void {
    increase(this.of(appliance).handOuts, kind);
  }

  /** @param appliance its id */
  of(appliance: string): ApplianceTally {
    const known = this.#appliances.get(appliance);
    if (known !== undefined) return known;
    const added: ApplianceTally = { refreshes: {}, handOuts: {}, pairings: {}, refusedTokens: 0 };
    this.#appliances.set(appliance, added);
    for (const first of this.#appliances.keys()) {
      if (this.#appliances.size <= MOST) break;
      this.#appliances.delete(first);
    }
    return added;
  }

  /** Forgets all appliances but these. @param ids of those that are there */
  keep(ids: ReadonlySet<string>): void {
    for (const id of this.#appliances.keys()) if (!ids.has(id)) this.#appliances.delete(id);
  }
}

function increase<Outcome extends string>(counts: Counts<Outcome>, outcome: Outcome): void {
  counts[outcome] = (counts[outcome] ?? 0) + 1;
}
