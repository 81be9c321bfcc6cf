import type { FastifyRequest } from 'fastify';
import type { Appliance } from '../../core/appliance.ts';
import type { LanService } from '../../core/lan-service.ts';
import { sameSecret, sha256 } from '../../system/compare.ts';

/** What a token request says of who sends it. */
export type ClientAuthentication =
  | { readonly kind: 'authenticated'; readonly appliance: Appliance }
  /** Wrong or missing credentials: 401 `invalid_client`. */
  | { readonly kind: 'refused' }
  /** Two ways of authenticating at once, or a header that can't be read (RFC 6749, 2.3): 400 `invalid_request`. */
  | { readonly kind: 'malformed'; readonly description: string };

/** Authenticates an appliance by HTTP Basic (`client_secret_basic`) or by the form (`client_secret_post`). */
export async function authenticateClient(
  service: LanService,
  request: FastifyRequest,
  form: ReadonlyMap<string, string>,
): Promise<ClientAuthentication> {
  const { authorization } = request.headers;
  const id = form.get('client_id');
  const secret = form.get('client_secret');
  if (authorization === undefined) return check(service, id, secret);
  if (secret !== undefined) {
    return { kind: 'malformed', description: 'authenticate with the Authorization header or in the form, not both' };
  }
  const basic = /^basic +([a-z0-9+/]+=*)$/i.exec(authorization.trim())?.[1];
  if (basic === undefined) return { kind: 'refused' };
  const [, user, password] = /^([^:]*):(.*)$/s.exec(Buffer.from(basic, 'base64').toString()) ?? [];
  const decodedId = formDecoded(user);
  if (id !== undefined && id !== decodedId) {
    return { kind: 'malformed', description: 'the client_id of the form is not the one of the Authorization header' };
  }
  return check(service, decodedId, formDecoded(password));
}

function check(service: LanService, id: string | undefined, secret: string | undefined): ClientAuthentication {
  const appliance = id === undefined ? undefined : service.client(id);
  // In the same time for whatever is wrong.
  const expected = appliance?.credentials.kind === 'secret' ? appliance.credentials.hash : '';
  const right = sameSecret(sha256(secret ?? ''), expected);
  return right && appliance !== undefined ? { kind: 'authenticated', appliance } : { kind: 'refused' };
}

/** Both parts are form-encoded before they are joined (RFC 6749, 2.3.1). */
function formDecoded(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
