import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ProofRejection } from '../oauth/dpop-proofs.ts';
import type { Settings } from '../settings/settings.ts';
import { requestContext } from './request-context.ts';

/** Whether tokens are only issued to requests with a proof. */
export function isProofRequired({ dpop }: Settings): boolean {
  return dpop === 'required' || dpop === 'nonce';
}

/**
 * Verifies the header DPoP of a request (RFC 9449, 4.3). If the setting wants a nonce, every response names one.
 * @param accessToken that the proof must be for, or null at the endpoints of the server
 * @returns the thumbprint of the proven key, or null if there is no proof or the setting ignores it
 */
export function verifyProof(
  request: FastifyRequest,
  reply: FastifyReply,
  accessToken: string | null,
): Promise<{ readonly jkt: string } | ProofRejection> | null {
  const { portal, method, sentUrl } = requestContext(request);
  const { dpopProofs, settings } = portal;
  const needsNonce = settings.dpop === 'nonce';
  if (needsNonce) reply.header('dpop-nonce', dpopProofs.nonce());
  const proof = request.headers['dpop'];
  if (proof === undefined || settings.dpop === 'ignored') return null;
  const [path = ''] = sentUrl.split('?');
  const url = new URL(path, `${settings.tls ? 'https' : 'http'}://${request.headers.host}`).href;
  return dpopProofs.verify(String(proof), { method, url, accessToken, needsNonce });
}
