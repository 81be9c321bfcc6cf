import { rfc3339 } from '../core/clock.ts';
import { backoffDelay } from '../core/grants/backoff.ts';
import { type CredentialLocation, describeCredentials, howToApplyCorrection } from '../core/portals/identity.ts';
import type { InspectedPortal } from '../core/portals/portal-status.ts';
import type { Store } from '../core/store.ts';
import type { Environment } from './ports.ts';

/** The hub as the client of a portal. */
export interface PortalClient extends Pick<InspectedPortal, 'probeClient'> {
  /** Changes whenever the portal's address, the client_id or the client secret does. */
  readonly digest: string;
  readonly credentialLocation: CredentialLocation;
}

/** A portal that does not accept the hub as its client; `since` in RFC 3339 UTC. */
export interface RejectedClient {
  readonly portal: string;
  readonly message: string;
  readonly since: string;
}

/** A portal that does not answer is asked again after these times. */
const BACKOFF = { base: 60_000, cap: 3_600_000 };

/**
 * Whether the portals accept the hub as their client. Each portal is asked once for each of its settings, and not at all
 * if a login or a refresh shows it before, so that a person learns of a wrong client secret before logging in.
 */
export class PortalClients implements Disposable {
  readonly #environment: Environment;
  readonly #store: Pick<Store, 'settings'>;
  readonly #clients: ReadonlyMap<string, PortalClient>;
  readonly #rejected = new Map<string, RejectedClient>();
  /** The portals that need not be asked. */
  readonly #known = new Set<string>();
  readonly #ended = new AbortController();

  /** @param clients by the names of the portals */
  constructor(environment: Environment, store: Pick<Store, 'settings'>, clients: ReadonlyMap<string, PortalClient>) {
    this.#environment = environment;
    this.#store = store;
    this.#clients = clients;
  }

  /** The portals that do not accept the hub. */
  get rejected(): readonly RejectedClient[] {
    return [...this.#rejected.values()];
  }

  /** Asks each portal whose settings are new. @param delay ms until then */
  start(delay: number): void {
    for (const [portal, client] of this.#clients) void this.#checkNew(portal, client, delay);
  }

  /** A login or a refresh has shown that a portal accepts the hub. */
  accept(portal: string): void {
    const client = this.#clients.get(portal);
    this.#rejected.delete(portal);
    if (client === undefined || this.#known.has(portal)) return;
    this.#known.add(portal);
    void this.#save(portal, client.digest);
  }

  /** A login has shown that a portal does not accept the hub. It is asked again after a restart. */
  reject(portal: string): void {
    const client = this.#clients.get(portal);
    if (client === undefined || this.#rejected.has(portal)) return;
    const { clock, log } = this.#environment;
    const { credentialLocation } = client;
    const message = `The portal ${portal} does not accept the hub as its client: correct ${describeCredentials(credentialLocation, 'or')}, and ${howToApplyCorrection(credentialLocation)}`;
    this.#rejected.set(portal, { portal, message, since: rfc3339(clock.now().wall) });
    log.error('portal_client_rejected', { portal, what_to_do: message });
    if (this.#known.delete(portal)) void this.#save(portal, '');
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
  }

  async #checkNew(portal: string, { digest, probeClient }: PortalClient, delay: number): Promise<void> {
    const { signal } = this.#ended;
    const { timers, random } = this.#environment;
    // A store that can't be read is reported elsewhere.
    const known = await this.#store.settings.get(settingOf(portal)).catch(() => digest);
    if (known === digest) this.#known.add(portal);
    else await timers.sleep(delay, signal);
    for (let tries = 1; !signal.aborted && !this.#known.has(portal); tries++) {
      const result = await probeClient();
      if (signal.aborted || this.#known.has(portal)) return;
      if (result === 'accepted') return this.accept(portal);
      if (result === 'rejected') return this.reject(portal);
      await timers.sleep(backoffDelay(BACKOFF, tries, random.fraction()), signal);
    }
  }

  async #save(portal: string, digest: string): Promise<void> {
    const name = settingOf(portal);
    // A store that can't be written is reported where tokens are written.
    const save = async () => {
      if ((await this.#store.settings.get(name)) !== digest) await this.#store.settings.save({ [name]: digest });
    };
    await save().catch(() => undefined);
  }
}

function settingOf(portal: string): string {
  return `accepted client of ${portal}`;
}
