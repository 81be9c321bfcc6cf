import type { Appliance } from '../core/appliance.ts';
import type { DeviceOutcome, DevicePoll, LinkResult } from '../core/lan-service.ts';
import type { Pairing } from '../core/pairing.ts';
import type { Pairings } from './pairings.ts';
import type { Surroundings } from './surroundings.ts';

/** Pairings that appliances start themselves (RFC 8628). */
export class DeviceFlows {
  constructor(_pairings: Pairings, _surroundings: Surroundings) {}

  /** @param scope what the appliance asks for; null where it does not say */
  async begin(_appliance: Appliance, _scope: string | null): Promise<DeviceOutcome> {
    return { kind: 'unavailable', retryAfter: 1 };
  }

  /** How a device flow stands; each call is one poll. @param appliance its id */
  poll(_appliance: string, _deviceCode: string): DevicePoll {
    return { kind: 'unknown' };
  }

  /** The pairing that a user code stands for, however it was typed. */
  byUserCode(_userCode: string): Pairing | null {
    return null;
  }

  /** A fresh link for the pairing of a user code. */
  async openLink(_userCode: string): Promise<LinkResult> {
    return { kind: 'over' };
  }
}
