import { quantile } from '../bench.d/statistics.ts';

/** Who wanted a refresh: the hub's own schedule, or an appliance that waits. */
export type RefreshTrigger = 'own' | 'prompted';

/** The requests of a time, by windows. */
export interface RateStatistics {
  /** A second, over all of it. */
  readonly mean: number;
  /** A second, in the busiest window. */
  readonly peak: number;
  /** A second, in the window that 99 % are not busier than. */
  readonly p99: number;
}

/** Counts the requests of each second. */
export class RequestRates {
  readonly #of: Readonly<Record<RefreshTrigger, Uint32Array>>;

  /** @param length of all that is simulated, in ms */
  constructor(length: number) {
    const seconds = Math.ceil(length / 1000) + 1;
    this.#of = { own: new Uint32Array(seconds), prompted: new Uint32Array(seconds) };
  }

  count(at: number, wanted: RefreshTrigger): void {
    const counts = this.#of[wanted];
    const second = Math.floor(at / 1000);
    counts[second] = (counts[second] ?? 0) + 1;
  }

  /**
   * @param from where it begins, and `to` where it ends, in ms
   * @param window in ms; the last one is left out where it is not a whole one
   */
  of(wanted: RefreshTrigger | 'all', from: number, to: number, window: number): RateStatistics {
    const each = this.windows(wanted, from, to, window).map(([, rate]) => rate);
    return {
      mean: each.reduce((sum, rate) => sum + rate, 0) / each.length,
      peak: Math.max(...each),
      p99: quantile(each, 0.99),
    };
  }

  /** Where each window begins, in ms, and its requests a second. */
  windows(wanted: RefreshTrigger | 'all', from: number, to: number, window: number): [from: number, rate: number][] {
    const width = window / 1000;
    const windows: [number, number][] = [];
    for (let begin = Math.ceil(from / 1000); begin + width <= Math.floor(to / 1000); begin += width) {
      let sum = 0;
      for (let second = begin; second < begin + width; second += 1) sum += this.#at(wanted, second);
      windows.push([begin * 1000, sum / width]);
    }
    return windows;
  }

  #at(wanted: RefreshTrigger | 'all', second: number): number {
    const { own, prompted } = this.#of;
    return (wanted === 'prompted' ? 0 : (own[second] ?? 0)) + (wanted === 'own' ? 0 : (prompted[second] ?? 0));
  }
}
