import { createBrokerAdministration } from '../../src/broker/administration.ts';
import { createLanService } from '../../src/broker/lan-service.ts';
import type { LanService } from '../../src/core/lan-service.ts';
import type { BrokerHarness } from './broker-harness.ts';

/** The administration of the harness's current run. */
export function administrationOf({ run }: BrokerHarness) {
  return createBrokerAdministration(run, {
    endpoint: (path) => `https://hub${path}`,
    stableEndpoint: (path) => `https://hub${path}`,
    shortLink: () => null,
    fingerprint: () => '',
  });
}

/** The hub of a LAN service. */
export const HUB = { id: 'latchkey-5f0c9a1e', name: 'Test hub', version: '0.1.0' };

/** The LAN service of the harness's current run. */
export function lanServiceOf({ run, time }: BrokerHarness): LanService {
  return createLanService(run, {
    hub: HUB,
    started: time.now(),
    caFingerprint: () => '',
    tokenRequested: () => undefined,
  });
}

/** Requests a token like an appliance on the home network. @returns the token, or the kind of the result */
export async function requestToken(harness: BrokerHarness, appliance: string): Promise<string> {
  const request = { scope: null, minTtl: 0 };
  const result = await lanServiceOf(harness).issueToken(harness.run.appliances.get(appliance), request);
  return result.kind === 'token' ? result.accessToken.reveal() : result.kind;
}
