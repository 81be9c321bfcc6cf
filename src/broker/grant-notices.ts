import { messageOf } from '../core/failure.ts';
import type { Grant } from '../core/grant.ts';
import type { PortalIdentity } from '../core/portal.ts';
import type { Health } from '../core/refresh.ts';
import type { Surroundings } from './surroundings.ts';

/** A grant and how it stands. */
interface Standing {
  readonly grant: Grant;
  readonly health: Health;
}

/** Tells the log how the grants fare. */
export class GrantNotices {
  readonly #surroundings: Pick<Surroundings, 'clock' | 'log'>;
  readonly #nameOf: (appliance: string) => string | undefined;

  constructor(surroundings: Pick<Surroundings, 'clock' | 'log'>, nameOf: (appliance: string) => string | undefined) {
    this.#surroundings = surroundings;
    this.#nameOf = nameOf;
  }

  /** An attempt brought no new tokens. */
  setBack({ grant, health }: Standing, event: string): void {
    if (health.kind === 'good') return;
    const { clock, log } = this.#surroundings;
    const { problem, retryAt } = health;
    const retryIn = retryAt === null ? null : Math.round((retryAt - clock.now().uptime) / 1000);
    const appliance = this.#nameOf(grant.appliance);
    log.warn(event, { appliance, problem: problem.code, message: problem.message, retry_in: retryIn });
  }

  /** Tells once of what a person should know, however often it is tried again and the hub is started. */
  changed(before: Standing, { grant, health }: Standing): void {
    if (health.kind === 'good') return;
    const appliance = this.#nameOf(grant.appliance);
    const { message } = health.problem;
    if (health.kind === 'refused') {
      const known = before.grant.refused !== null || before.health.kind === 'refused';
      if (!known) this.#surroundings.log.error('pairing needed', { appliance, message });
    } else if (before.grant.doubt === null && grant.doubt !== null) {
      this.#surroundings.log.warn('answer lost', { appliance, message });
    }
  }

  /** The cloud refuses the token at hand, its appliance says. */
  distrusted({ grant }: Standing): void {
    const appliance = this.#nameOf(grant.appliance);
    this.#surroundings.log.warn('token refused by the cloud', { appliance, generation: grant.generation });
  }

  /** Its appliance goes to another portal than the one that gave it. @param present the portal it goes to */
  rests({ grant }: Standing, present: PortalIdentity): void {
    const appliance = this.#nameOf(grant.appliance);
    this.#surroundings.log.warn('grant is of another portal, it is kept and rests', {
      appliance,
      given_by: grant.givenBy?.origin,
      given_to: grant.givenBy?.clientId,
      portal: present.origin,
      client_id: present.clientId,
      what_to_do: `put the portal back into the configuration, or latchkey pair ${appliance}`,
    });
  }

  unwritable({ grant }: Standing, error: unknown): void {
    const appliance = this.#nameOf(grant.appliance);
    this.#surroundings.log.error('store could not be written', { appliance, error: messageOf(error) });
  }
}
