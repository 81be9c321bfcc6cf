import * as v from 'valibot';
import { checkScope } from '../../core/appliances/appliance.ts';
import type { ClientMetadata } from '../../core/appliances/registration.ts';
import { Failure } from '../../core/failure.ts';
import { parseJwkSet } from '../../system/jwk-set.ts';
import { CLIENT_AUTH_METHODS, GRANT_TYPES } from './server-metadata.ts';

/** How an appliance proves who it is (RFC 7591, 2), as far as the hub knows ways. */
type AuthMethod = (typeof CLIENT_AUTH_METHODS)[number];

const SECRET_METHODS_TEXT = 'client_secret_basic or client_secret_post, and the hub issues a secret';

/** Nothing in it can move a cursor, hide or break a line. */
const SOFTWARE_ID_PATTERN = /^[^\p{C}\p{Zl}\p{Zp}]{1,200}$/u;

const text = (description: string) => v.nullish(v.pipe(v.string(), v.description(description)));

/** `POST /oauth/register` (RFC 7591, 2); members that are not named here are read over. */
export const RegistrationRequestSchema = v.object({
  client_name: text('What people call the appliance; it becomes its NAME on the hub'),
  scope: text('Space-separated names; the scope that its grant is to be asked for'),
  software_id: text('What it says of its own software: 1 to 200 printable characters, for the installer to see'),
  token_endpoint_auth_method: text(`${CLIENT_AUTH_METHODS.join(', ')}; default: private_key_jwt where there are jwks`),
  grant_types: v.nullish(v.array(v.string())),
  jwks: v.nullish(v.record(v.string(), v.unknown())),
  jwks_uri: v.nullish(v.unknown()),
});

type RegistrationRequestBody = v.InferOutput<typeof RegistrationRequestSchema>;

/** What an appliance says of itself, or what is wrong with that, in one sentence. */
export type ClientMetadataResult =
  | { readonly kind: 'read'; readonly metadata: ClientMetadata; readonly method: AuthMethod }
  | { readonly kind: 'invalid'; readonly description: string };

/** Reads client metadata. What is wrong is told by the member's name and never by its value. */
export function parseClientMetadata(body: unknown): ClientMetadataResult {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return invalidMetadata('client metadata is a JSON object (RFC 7591, 2)');
  }
  const parsed = v.safeParse(RegistrationRequestSchema, body);
  if (!parsed.success) return invalidMetadata(describeTypeError(parsed.issues[0]));
  const metadata = parsed.output;
  const grantTypes = metadata.grant_types ?? [];
  if (grantTypes.length > 0 && !GRANT_TYPES.some((type) => grantTypes.includes(type))) {
    return invalidMetadata(
      `grant_types: the hub grants none of these; leave it out, or name one of ${GRANT_TYPES.join(', ')}`,
    );
  }
  const softwareId = metadata.software_id || null;
  if (softwareId !== null && !SOFTWARE_ID_PATTERN.test(softwareId)) {
    return invalidMetadata('software_id: send 1 to 200 printable characters, or leave it out');
  }
  const authentication = selectAuthMethod(metadata);
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
    if (error instanceof Failure) return invalidMetadata(error.message);
    throw error;
  }
}

/** How it will prove who it is: with a secret that the hub gives it, or with its own keys. */
function selectAuthMethod({
  token_endpoint_auth_method: asked,
  jwks,
  jwks_uri,
}: RegistrationRequestBody):
  | { readonly kind: 'method'; readonly method: AuthMethod; readonly keys: ClientMetadata['keys'] }
  | InvalidMetadata {
  if (jwks_uri !== undefined && jwks_uri !== null) {
    return invalidMetadata('jwks_uri: the hub fetches no keys from elsewhere; send them in jwks');
  }
  const hasKeys = jwks !== undefined && jwks !== null;
  const method = CLIENT_AUTH_METHODS.find(
    (one) => one === (asked ?? (hasKeys ? 'private_key_jwt' : 'client_secret_basic')),
  );
  if (method === undefined) {
    const name = 'token_endpoint_auth_method';
    return asked === 'none'
      ? invalidMetadata(
          `${name}: an appliance must prove who it is; ask for ${SECRET_METHODS_TEXT}, or for private_key_jwt with jwks`,
        )
      : invalidMetadata(
          `${name}: the hub does not know this one; leave it out, or name one of ${CLIENT_AUTH_METHODS.join(', ')}`,
        );
  }
  if (method !== 'private_key_jwt') {
    return hasKeys
      ? invalidMetadata(`jwks: keys do not go with ${method}; leave them out, or ask for private_key_jwt`)
      : { kind: 'method', method, keys: null };
  }
  if (!hasKeys)
    return invalidMetadata(`jwks: private_key_jwt needs public keys; send them, or ask for ${SECRET_METHODS_TEXT}`);
  const read = parseJwkSet(jwks);
  return read.kind === 'keys' ? { kind: 'method', method, keys: read.keys } : invalidMetadata(`jwks: ${read.reason}`);
}

type InvalidMetadata = Extract<ClientMetadataResult, { kind: 'invalid' }>;

function invalidMetadata(description: string): InvalidMetadata {
  return { kind: 'invalid', description };
}

const EXPECTED_TYPES: Readonly<Record<string, string>> = {
  grant_types: 'a list of texts',
  jwks: 'a JWK Set, an object',
};

function describeTypeError(issue: v.BaseIssue<unknown>): string {
  const member = String(issue.path?.[0]?.key ?? 'the metadata');
  return `${member}: send ${EXPECTED_TYPES[member] ?? 'a text'}, or leave it out`;
}
