import type { Appliance } from './appliance.ts';
import type { HandOut } from './hand-out.ts';
import type { Pairing } from './pairing.ts';
import type { Secret } from './secret.ts';

/** What a browser brought to `/callback/{nonce}`: a code, a refusal (`error`), or neither. */
export type Callback =
  | { readonly kind: 'code'; readonly code: Secret }
  | { readonly kind: 'error'; readonly error: string }
  | { readonly kind: 'nothing' };

/** What the home network may ask of the hub. */
export interface LanService {
  /** The appliance with these credentials, or null. */
  authenticate(clientId: string, clientSecret: string): Appliance | null;
  /** @param scope what the appliance asks for; null where it does not say */
  handOut(appliance: Appliance, scope: string | null): Promise<HandOut>;
  /**
   * Takes what the portal's redirect brought, and waits some seconds for what becomes of it.
   * @returns the pairing as it stands then, and its appliance's name; null for a nonce that the hub never gave out
   */
  receiveCallback(nonce: string, callback: Callback): Promise<{ pairing: Pairing; appliance: string } | null>;
}
