// What the portal sees of the hub while it is fuzzed: an attacker at home must not be able to storm it.
import type { Findings } from '../findings.ts';
import type { FuzzedHome } from './home.ts';

/** Requests of the good flows of one part, and what may come with them by the attacker's own links. */
const OF_ONE_PART = 60;
/** Polls of links that are open: a few appliances, three links each, every five seconds. */
const A_SECOND = 5;

/** Counts what the portal gets, part by part. */
export class PortalWatch {
  readonly #home: FuzzedHome;
  #seen = 0;
  #since = performance.now();

  constructor(home: FuzzedHome) {
    this.#home = home;
    this.#seen = this.all();
  }

  all(): number {
    return Object.values(this.#home.portalRequests()).reduce((sum, count) => sum + count, 0);
  }

  /** @param where in the run, in words */
  judge(findings: Findings, where: string): void {
    const { emulator } = this.#home;
    const seconds = (performance.now() - this.#since) / 1000;
    const got = this.all() - this.#seen;
    this.#seen = this.all();
    this.#since = performance.now();
    const most = OF_ONE_PART + A_SECOND * seconds;
    if (got > most) {
      const each = JSON.stringify(this.#home.portalRequests());
      findings.problem('the portal is stormed', `${where}: ${got} requests in ${seconds.toFixed(1)} s; all: ${each}`);
    }
    const { reusedRefreshTokens, repeatedCodes, overlappingRefreshes, failedAuthentications } = emulator.findings();
    for (const one of [...reusedRefreshTokens, ...repeatedCodes, ...overlappingRefreshes, ...failedAuthentications]) {
      findings.problem('the portal finds fault with the hub', `${where}: ${one.message}`);
    }
  }
}
