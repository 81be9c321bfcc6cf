import { exportJWK, generateKeyPair } from 'jose';
import { request } from 'undici';
import { emulatorCloudConfiguration } from '../../../src/cli/test-mode.ts';
import type { RedirectLink } from '../../../src/core/portals/login-link.ts';
import type { CodeResponse } from '../../../src/core/portals/portal.ts';
import { Secret } from '../../../src/core/secret.ts';
import type { Emulator } from '../../../src/emulator/index.ts';
import { parseClientKey } from '../../../src/portal/oauth2/client-key.ts';
import { OAuth2Portal, type OAuth2PortalOptions } from '../../../src/portal/oauth2/oauth2-portal.ts';
import type { OAuth2Settings } from '../../../src/portal/oauth2/settings.ts';
import { systemClock, systemTimers } from '../../../src/system/clock.ts';
import { systemRandom } from '../../../src/system/random.ts';

/** The key of the client `latchkey`. */
const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
export const CLIENT_JWK = { ...(await exportJWK(publicKey)), kid: 'the-key', alg: 'ES256' };
const clientKey = await parseClientKey(JSON.stringify({ ...(await exportJWK(privateKey)), kid: 'the-key' }));

interface Changes
  extends Partial<OAuth2Settings>,
    Partial<Pick<OAuth2PortalOptions, 'metadataCache' | 'clock' | 'timers'>> {
  readonly authentication?: 'private_key_jwt' | 'any';
}

/** Connects to an authorization server by its issuer; the client is `latchkey`. */
export function connectOAuth2Portal(
  { frontendUrl, clientSecret }: Pick<Emulator, 'frontendUrl' | 'clientSecret'>,
  { authentication = 'any', metadataCache, clock, timers, ...changes }: Changes = {},
): OAuth2Portal {
  const hasSecret = authentication !== 'private_key_jwt';
  const clientAuth = authentication === 'any' ? null : authentication;
  const { settings } = emulatorCloudConfiguration(
    { frontendUrl },
    { name: 'cloud', clientId: 'latchkey', clientSecret },
  );
  return new OAuth2Portal({
    settings: {
      ...settings,
      clientAuth,
      clientSecret: hasSecret ? settings.clientSecret : null,
      clientKey: authentication === 'private_key_jwt' ? clientKey : null,
      login: 'auto',
      tokenLifetime: 3_600_000,
      ...changes,
    },
    credentialLocation: { portal: 'cloud' },
    ca: [],
    callbackAddress: () => 'http://192.168.1.7:8480/callback',
    metadataCache: metadataCache ?? { load: async () => null, save: async () => undefined },
    clock: clock ?? systemClock(),
    timers: timers ?? systemTimers,
    random: systemRandom,
  });
}

/** The `User-Agent` of {@link logInByRedirect}. */
export const BROWSER = 'Mozilla/5.0';

/** Logs in at a portal that asks nothing. @returns the response that the browser would bring */
export async function logInByRedirect(link: RedirectLink): Promise<CodeResponse> {
  const { headers } = await request(link.authorizeUrl, { headers: { 'user-agent': BROWSER } });
  const query = new URL(String(headers['location'])).searchParams;
  if (query.get('state') !== link.state) throw new Error(`another state: ${query.get('state')}`);
  return { code: new Secret(query.get('code') ?? ''), issuer: query.get('iss') };
}
