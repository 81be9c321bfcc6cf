import * as v from 'valibot';
import { checkScope } from '../../core/appliances/appliance.ts';
import type { ClientMetadata } from '../../core/appliances/registration.ts';
import { Failure } from '../../core/failure.ts';
import { readPublicKeys } from '../../system/public-keys.ts';
import { AUTHENTICATION, GRANT_TYPES } from './metadata.ts';

/** How an appliance proves who it is (RFC 7591, 2), as far as the hub knows ways. */
type AuthMethod = (typeof AUTHENTICATION)[number];

const SECRET_METHODS = 'client_secret_basic or client_secret_post, and the hub issues a secret';

/** Nothing in it can move a cursor, hide or break a line. */
const SOFTWARE_ID = /^[^\p{C}\p{Zl}\p{Zp}]{1,200}$/u;

const text = (description: string) => v.nullish(v.pipe(v.string(), v.description(description)));

/** `POST /oauth/register` (RFC 7591, 2); members that are not named here are read over. */
export const RegistrationRequest = v.object({
  client_name: text('What people call the appliance; it becomes its NAME on the hub'),
  scope: text('Space-separated names; the scope that its grant is to be asked for'),
  software_id: text('What it says of its own software: 1 to 200 printable characters, for the installer to see'),
  token_endpoint_auth_method: text(`${AUTHENTICATION.join(', ')}; default: private_key_jwt where there are jwks`),
  grant_types: v.nullish(v.array(v.string())),
  jwks: v.nullish(v.record(v.string(), v.unknown())),
  jwks_uri: v.nullish(v.unknown()),
});

type Metadata = v.InferOutput<typeof RegistrationRequest>;

/** What an appliance says of itself, or what is wrong with that, in one sentence. */
export type MetadataRead =
  | { readonly kind: 'read'; readonly metadata: ClientMetadata; readonly method: AuthMethod }
  | { readonly kind: 'invalid'; readonly description: string };

/** Reads client metadata. What is wrong is told by the member's name and never by its value. */
export function readMetadata(body: unknown): MetadataRead {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return invalid('client metadata is a JSON object (RFC 7591, 2)');
  }
  const parsed = v.safeParse(RegistrationRequest, body);
  if (!parsed.success) return invalid(wrongType(parsed.issues[0]));
  const metadata = parsed.output;
  const grantTypes = metadata.grant_types ?? [];
  if (grantTypes.length > 0 && !GRANT_TYPES.some((type) => grantTypes.includes(type))) {
    return invalid(`grant_types: the hub grants none of these; leave it out, or name one of ${GRANT_TYPES.join(', ')}`);
  }
  const softwareId = metadata.software_id || null;
  if (softwareId !== null && !SOFTWARE_ID.test(softwareId)) {
    return invalid('software_id: send 1 to 200 printable characters, or leave it out');
  }
  const authentication = authenticationOf(metadata);
  if (authentication.kind === 'invalid') return authentication;
  const { method, keys } = authentication;
  try {
    const scope = checkScope(metadata.scope);
    return {
      kind: 'read',
      method,
      metadata: { clientName: metadata.client_name ?? null, scope, softwareId, keys },
    };
  } catch (error) {
    if (error instanceof Failure) return invalid(error.message);
    throw error;
  }
}

/** How it will prove who it is: with a secret that the hub gives it, or with its own keys. */
function authenticationOf({
  token_endpoint_auth_method: asked,
  jwks,
  jwks_uri,
}: Metadata):
  | { readonly kind: 'method'; readonly method: AuthMethod; readonly keys: ClientMetadata['keys'] }
  | Invalid {
  if (jwks_uri !== undefined && jwks_uri !== null) {
    return invalid('jwks_uri: the hub fetches no keys from elsewhere; send them in jwks');
  }
  const hasKeys = jwks !== undefined && jwks !== null;
  const method = AUTHENTICATION.find((one) => one === (asked ?? (hasKeys ? 'private_key_jwt' : 'client_secret_basic')));
  if (method === undefined) {
    const name = 'token_endpoint_auth_method';
    return asked === 'none'
      ? invalid(
          `${name}: an appliance must prove who it is; ask for ${SECRET_METHODS}, or for private_key_jwt with jwks`,
        )
      : invalid(`${name}: the hub does not know this one; leave it out, or name one of ${AUTHENTICATION.join(', ')}`);
  }
  if (method !== 'private_key_jwt') {
    return hasKeys
      ? invalid(`jwks: keys do not go with ${method}; leave them out, or ask for private_key_jwt`)
      : { kind: 'method', method, keys: null };
  }
  if (!hasKeys) return invalid(`jwks: private_key_jwt needs public keys; send them, or ask for ${SECRET_METHODS}`);
  const read = readPublicKeys(jwks);
  return read.kind === 'keys' ? { kind: 'method', method, keys: read.keys } : invalid(`jwks: ${read.why}`);
}

type Invalid = Extract<MetadataRead, { kind: 'invalid' }>;

function invalid(description: string): Invalid {
  return { kind: 'invalid', description };
}

const SHAPES: Readonly<Record<string, string>> = { grant_types: 'a list of texts', jwks: 'a JWK Set, an object' };

function wrongType(issue: v.BaseIssue<unknown>): string {
  const member = String(issue.path?.[0]?.key ?? 'the metadata');
  return `${member}: send ${SHAPES[member] ?? 'a text'}, or leave it out`;
}
