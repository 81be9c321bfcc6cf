import { quantile } from '../bench.d/statistics.ts';

/** What triggered a refresh: the hub's own schedule, or a token request of an appliance. */
export type RefreshTrigger = 'own' | 'prompted';

/** Request rates of a period that is divided into windows, in requests per second. */
export interface RateStatistics {
  /** Over the whole period. */
  readonly mean: number;
  /** In the busiest window. */
  readonly peak: number;
  /** The 99th percentile of the windows. */
  readonly p99: number;
}

/** Counts the requests of each second. */
export class RequestRates {
  readonly #of: Readonly<Record<RefreshTrigger, Uint32Array>>;

  /** @param length of the simulation, in ms */
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
   * The statistics of a period.
   * @param from begin of the period, and `to` its end, in ms
   * @param window in ms; an incomplete last window is ignored
   */
  of(wanted: RefreshTrigger | 'all', from: number, to: number, window: number): RateStatistics {
    const each = this.windows(wanted, from, to, window).map(([, rate]) => rate);
    return {
      mean: each.reduce((sum, rate) => sum + rate, 0) / each.length,
      peak: Math.max(...each),
      p99: quantile(each, 0.99),
    };
  }

  /** The begin of each window, in ms, and its requests per second. */
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
