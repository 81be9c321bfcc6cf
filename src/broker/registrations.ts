import type { InviteRequest } from '../core/administration.ts';
import type { Introduction, Registration } from '../core/registration.ts';
import type { Secret } from '../core/secret.ts';
import type { Store } from '../core/store.ts';
import type { Appliances } from './appliances.ts';
import type { Surroundings } from './surroundings.ts';

/** What registrations need. */
export interface RegistrationContext {
  readonly surroundings: Surroundings;
  readonly store: Store;
  readonly appliances: Appliances;
}

/** Appliances that introduce themselves (RFC 7591): closed, unless an installer holds it open or has invited them. */
export class Registrations {
  private constructor(_context: RegistrationContext) {}

  static async load(context: RegistrationContext): Promise<Registrations> {
    return new Registrations(context);
  }

  /** Milliseconds for which any appliance may introduce itself; 0 while that is closed. */
  get openFor(): number {
    return 0;
  }

  /** @param ms 0 closes it */
  hold(_ms: number): void {}

  /** @returns the initial access token */
  async invite(_request: InviteRequest): Promise<Secret> {
    throw new Error('not yet');
  }

  /** @param token the initial access token; null where none came along */
  async register(_introduction: Introduction, _token: string | null): Promise<Registration> {
    return { kind: 'closed' };
  }
}
