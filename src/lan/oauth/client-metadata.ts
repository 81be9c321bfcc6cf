import * as v from 'valibot';
import type { ClientMetadata } from '../../core/appliances/registration.ts';
import { checkScope } from '../../core/connections/scope.ts';
import { Failure } from '../../core/failure.ts';
import { parseJwkSet } from '../../system/jwk-set.ts';
import { CLIENT_AUTH_METHODS, GRANT_TYPES } from './server-metadata.ts';

/** A `token_endpoint_auth_method` (RFC 7591, 2) that the hub supports. */
type AuthMethod = (typeof CLIENT_AUTH_METHODS)[number];

const SECRET_METHODS_TEXT = 'client_secret_basic or client_secret_post (the hub issues a secret)';

/** Excludes characters that move the cursor, hide text or break the line. */
const SOFTWARE_ID_PATTERN = /^[^\p{C}\p{Zl}\p{Zp}]{1,200}$/u;

const text = (description: string) => v.nullish(v.pipe(v.string(), v.description(description)));

/** `POST /oauth/register` (RFC 7591, 2); other members are ignored. */
export const RegistrationRequestSchema = v.object({
  client_name: text('Name of the appliance for people; the hub derives its NAME from it'),
  scope: text('Space-separated scope that the hub requests from the portal for this appliance'),
  software_id: text('Identifier of the software, 1 to 200 printable characters; shown to the installer'),
  token_endpoint_auth_method: text(
    `${CLIENT_AUTH_METHODS.join(', ')}; default: private_key_jwt with jwks, otherwise client_secret_basic`,
  ),
  grant_types: v.nullish(v.array(v.string())),
  jwks: v.nullish(v.record(v.string(), v.unknown())),
  jwks_uri: v.nullish(v.unknown()),
});

type RegistrationRequestBody = v.InferOutput<typeof RegistrationRequestSchema>;

/** Client metadata, or one sentence that says what is wrong with it. */
type ClientMetadataResult =
  | { readonly kind: 'read'; readonly metadata: ClientMetadata; readonly method: AuthMethod }
  | { readonly kind: 'invalid'; readonly description: string };

/** Reads client metadata. An error names the member but never contains its value. */
export function parseClientMetadata(body: unknown): ClientMetadataResult {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return invalidMetadata('the client metadata must be a JSON object (RFC 7591, 2)');
  }
  const parsed = v.safeParse(RegistrationRequestSchema, body);
  if (!parsed.success) return invalidMetadata(describeTypeError(parsed.issues[0]));
  const metadata = parsed.output;
  const grantTypes = metadata.grant_types ?? [];
  if (grantTypes.length > 0 && !GRANT_TYPES.some((type) => grantTypes.includes(type))) {
    return invalidMetadata(
      `grant_types: the hub supports none of these; use at least one of ${GRANT_TYPES.join(', ')}, or omit it`,
    );
  }
  const softwareId = metadata.software_id || null;
  if (softwareId !== null && !SOFTWARE_ID_PATTERN.test(softwareId)) {
    return invalidMetadata('software_id: must be 1 to 200 printable characters; shorten or omit it');
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

/** The authentication method of the appliance: a secret from the hub, or its own keys. */
function selectAuthMethod({
  token_endpoint_auth_method: requested,
  jwks,
  jwks_uri,
}: RegistrationRequestBody):
  | { readonly kind: 'method'; readonly method: AuthMethod; readonly keys: ClientMetadata['keys'] }
  | InvalidMetadata {
  if (jwks_uri !== undefined && jwks_uri !== null) {
    return invalidMetadata('jwks_uri: not supported; send the keys in jwks');
  }
  const hasKeys = jwks !== undefined && jwks !== null;
  const method = CLIENT_AUTH_METHODS.find(
    (one) => one === (requested ?? (hasKeys ? 'private_key_jwt' : 'client_secret_basic')),
  );
  if (method === undefined) {
    const name = 'token_endpoint_auth_method';
    return requested === 'none'
      ? invalidMetadata(
          `${name}: an appliance must authenticate; use ${SECRET_METHODS_TEXT}, or private_key_jwt with jwks`,
        )
      : invalidMetadata(`${name}: not supported; use one of ${CLIENT_AUTH_METHODS.join(', ')}, or omit it`);
  }
  if (method !== 'private_key_jwt') {
    return hasKeys
      ? invalidMetadata(`jwks: not allowed with ${method}; omit it, or use private_key_jwt`)
      : { kind: 'method', method, keys: null };
  }
  if (!hasKeys)
    return invalidMetadata(`jwks: private_key_jwt requires public keys; send them, or use ${SECRET_METHODS_TEXT}`);
  const read = parseJwkSet(jwks);
  return read.kind === 'keys' ? { kind: 'method', method, keys: read.keys } : invalidMetadata(`jwks: ${read.reason}`);
}

type InvalidMetadata = Extract<ClientMetadataResult, { kind: 'invalid' }>;

function invalidMetadata(description: string): InvalidMetadata {
  return { kind: 'invalid', description };
}

const EXPECTED_TYPES: Readonly<Record<string, string>> = {
  grant_types: 'an array of strings',
  jwks: 'a JWK Set object',
};

function describeTypeError(issue: v.BaseIssue<unknown>): string {
  const member = String(issue.path?.[0]?.key ?? 'the metadata');
  return `${member}: must be ${EXPECTED_TYPES[member] ?? 'a string'}, or be omitted`;
}
