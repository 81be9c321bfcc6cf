import { MADE_UP } from '../../../src/portal/client-check.ts';
import { FIREWALL } from '../portal-faults.ts';
import type { Appliances } from './appliances.ts';
import type { TokenSend } from './send-audit.ts';

/** A grant at the portal. The user has the name of the connection. */
export interface PortalGrant {
  readonly id: string;
  readonly user: string;
  readonly generation: number;
  readonly revoked: boolean;
}

interface LoggedRequest {
  readonly time: string;
  readonly endpoint: string;
  readonly form: Readonly<Record<string, string>>;
  readonly status: number | null;
  readonly answer: Readonly<Record<string, unknown>>;
  readonly number: number;
}

/** Requests that may still be unfinished when the log is read. */
const OVERLAP = 1000;

/** The refresh tokens that the portal has received, collected from its log. */
export class PortalLog {
  readonly #appliances: Appliances;
  readonly #sends = new Map<number, TokenSend>();
  /** The refresh tokens that the hubs have revoked. */
  readonly #revoked = new Set<string>();
  #last = 0;

  constructor(appliances: Appliances) {
    this.#appliances = appliances;
  }

  /** All refresh tokens that were received, in order. */
  get sends(): readonly TokenSend[] {
    return [...this.#sends.values()];
  }

  /** Whether the hubs have revoked a grant, or only its token of a generation. */
  wasRevoked(grant: string, generation: number | '' = ''): boolean {
    return [...this.#revoked].some((token) => token.startsWith(`${grant}.${generation}`));
  }

  /** How many of them were exchanged for new tokens. */
  get refreshes(): number {
    let count = 0;
    for (const { successor } of this.#sends.values()) if (successor !== null) count += 1;
    return count;
  }

  /** Reads new requests, and the results of those that were unfinished. Call it often, because the log is limited. */
  async collect(): Promise<void> {
    const since = Math.max(0, this.#last - OVERLAP);
    const { requests } = await this.#appliances.askPortal<{ requests: LoggedRequest[] }>(
      'GET',
      `/_emulator/requests?since=${since}`,
    );
    const [oldest] = requests;
    if (oldest !== undefined && oldest.number > this.#last + 1)
      throw new Error('requests are missing in the portal log');
    for (const { number, endpoint, form, time, status, answer } of requests) {
      this.#last = Math.max(this.#last, number);
      if (endpoint === 'revoke') this.#revoked.add(form['token'] ?? '');
      const token = form['refresh_token'];
      // The token with which a hub tries whether the portal accepts it as its client is of no grant.
      if (endpoint !== 'token' || token === undefined || token === MADE_UP) continue;
      if (status === FIREWALL.status) {
        // The portal has not seen it.
        this.#sends.delete(number);
        continue;
      }
      const [grant = '', generation] = token.split('.');
      this.#sends.set(number, {
        token,
        grant,
        generation: Number(generation),
        hub: form['hub'] ?? '',
        at: Date.parse(time),
        status,
        successor: typeof answer['refresh_token'] === 'string' ? answer['refresh_token'] : null,
      });
    }
  }

  async grants(): Promise<readonly PortalGrant[]> {
    return (await this.#appliances.askPortal<{ grants: PortalGrant[] }>('GET', '/_emulator/grants')).grants;
  }
}
