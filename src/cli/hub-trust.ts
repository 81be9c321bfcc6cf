import { Agent, request } from 'undici';
import { Failure } from '../core/failure.ts';
import { spkiFingerprint } from '../system/x509/certificates.ts';

/** How long the hub may take to respond, in ms: it responds within 10 s. */
export const HUB_TIMEOUT = 15_000;
/** The most bytes of a response. */
const MAX_RESPONSE = 262_144;
const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/;

/**
 * Fetches the CA of a hub, as anybody on the network may; only the pin makes it trustworthy. During a rotation, the old
 * one may have the pin.
 * @param origin of the hub
 * @returns PEM
 * @throws Failure `hub_not_running`; `not_allowed` if the pin is that of another CA
 */
export async function fetchPinnedCa(origin: string, pin: string): Promise<string> {
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false }, maxResponseSize: MAX_RESPONSE });
  try {
    for (const path of ['/ca.pem', '/ca-old.pem']) {
      const { body } = await request(`${origin}${path}`, { dispatcher, signal: AbortSignal.timeout(HUB_TIMEOUT) });
      const [certificate] = PEM_CERTIFICATE.exec(await body.text()) ?? [];
      if (certificate !== undefined && spkiFingerprint(certificate) === pin) return `${certificate}\n`;
    }
  } catch (cause) {
    throw new Failure('hub_not_running', `no hub responds at ${origin}: check the address and that it runs`, { cause });
  } finally {
    await dispatcher.destroy();
  }
  throw new Failure(
    'not_allowed',
    `the hub at ${origin} has another CA, or it is another device: "latchkey ca --fingerprint" on the hub prints the pin to compare`,
  );
}
