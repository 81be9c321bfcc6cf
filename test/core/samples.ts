import type { Instant } from '../../src/core/clock.ts';
import type { Grant } from '../../src/core/grants/grant.ts';
import type { Pairing, PairingStep } from '../../src/core/pairings/pairing.ts';
import type { PolledLink } from '../../src/core/portals/login-link.ts';
import { Secret } from '../../src/core/secret.ts';

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** The instant `uptime` ms after the first boot; the wall clock advances with it. */
export function instantAt(uptime: number, boot = 'boot-1'): Instant {
  return { boot, uptime, wall: Date.UTC(2031, 4, 5, 6) + uptime };
}

/** A grant whose token was obtained at instant 0 of the first boot and lives one hour. */
export function sampleGrant(changes: Partial<Grant> = {}): Grant {
  return {
    connection: '11111111-1111-4111-8111-111111111111',
    generation: 1,
    accessToken: new Secret('the-access-token'),
    refreshToken: new Secret('the-refresh-token'),
    scope: 'Monitoring RemoteControl',
    lifetime: HOUR,
    obtained: instantAt(0),
    portalTime: Date.UTC(2031, 4, 5, 6),
    doubt: null,
    refused: null,
    accessTokenRejectedAt: null,
    misconfigured: null,
    requestedScope: null,
    issuer: { origin: 'https://portal.example', clientId: 'a-client', name: 'home' },
    ...changes,
  };
}

export const SAMPLE_LINK: PolledLink = {
  kind: 'poll',
  authorizeUrl: 'https://portal.example/sso/authorize?response_type=code&client_id=c&state=the-state',
  codeUrl: 'https://api.portal.example/external/oauth2helper/code/get/c?state=the-state',
  tokenUrl: 'https://portal.example/sso/token',
  redirect: null,
};

export function samplePairing(step: PairingStep, changes: Partial<Pairing> = {}): Pairing {
  return {
    id: '22222222-2222-4222-8222-222222222222',
    connection: '11111111-1111-4111-8111-111111111111',
    portal: 'home',
    scope: 'Monitoring',
    nonce: 'the-nonce-of-128-bits',
    begun: instantAt(0),
    lifetime: 15 * MINUTE,
    spentCodes: [],
    lastFailure: null,
    device: null,
    step,
    ...changes,
  };
}
