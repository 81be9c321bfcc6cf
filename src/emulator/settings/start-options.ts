import * as v from 'valibot';
import { CLOUD_NAMES } from '../../clouds/catalogue.ts';
import { camelCase, choiceOf, integerInRange, renameKeys, snakeCase } from '../json.ts';
import type { ClientOptions, EmulatorClock, EmulatorOptions, Interceptor, UserOptions } from '../options.ts';
import { jwks, redirectUri } from './client-registry.ts';
import type { Settings } from './settings.ts';
import { CHANGE, checkMembers, OptionError } from './validation.ts';

const text = v.optional(v.string());
const flag = v.optional(v.boolean());
const port = v.optional(integerInRange(0, 65_535));
const uris = v.optional(v.array(redirectUri));

/** Claims that the emulator sets in its tokens: with others in their place they would be tokens that it does not know. */
const TOKEN_CLAIMS = 'iss aud exp iat jti client_id scope cnf act azp nonce at_hash auth_time'.split(' ');

/** Further claims. @param reserved names that they can't have */
function furtherClaims(reserved: readonly string[]) {
  const name = v.pipe(
    v.string(),
    v.check((found) => !reserved.includes(found), `another claim than ${reserved.join(', ')}, which the emulator sets`),
  );
  return v.optional(v.record(name, v.unknown()));
}

/** The members of a client, and of a user, by their library names. */
const CLIENT = {
  id: v.string(),
  secret: v.optional(v.string()),
  jwks: v.optional(jwks),
  name: v.optional(v.string()),
  redirectUrl: v.optional(choiceOf(['accept', 'refuse'])),
  redirectUris: uris,
  postLogoutRedirectUris: uris,
  // The tokens of a user have the user's.
  claims: furtherClaims(['sub', ...TOKEN_CLAIMS]),
} satisfies Record<keyof ClientOptions, v.GenericSchema>;
const USER = {
  name: v.string(),
  password: v.string(),
  claims: furtherClaims(TOKEN_CLAIMS),
} satisfies Record<keyof UserOptions, v.GenericSchema>;

/** RFC 1123, 2.1, and `_`, which names of containers may contain. */
const hostName = v.message(
  v.pipe(v.string(), v.regex(/^(?=.{1,253}$)[a-z0-9_-]+(\.[a-z0-9_-]+)*$/i)),
  'a host name without scheme and port',
);

/** One segment of a path, and none that the emulator uses itself. */
const issuer = v.message(
  v.pipe(v.string(), v.regex(/^(?!(?:sso|oauth2|external|api)$)[A-Za-z0-9][\w-]{0,99}$/)),
  'letters, digits, _ and -, and not sso, oauth2, external or api',
);

/** The options other than settings; they can't change at run time. */
const START_OPTIONS = {
  host: text,
  port,
  frontendPort: port,
  publicHost: text,
  allowedHosts: v.optional(v.array(hostName)),
  profile: v.optional(choiceOf(CLOUD_NAMES)),
  issuers: v.optional(v.array(issuer)),
  clients: v.optional(v.unknown()),
  redirectUris: uris,
  users: v.optional(v.unknown()),
  state: text,
  tls: flag,
  caFile: text,
  showSecrets: flag,
  faults: v.optional(v.array(v.looseObject({}))),
  seed: v.optional(integerInRange(0, Number.MAX_SAFE_INTEGER)),
  clock: v.optional(v.custom<EmulatorClock>((found) => hasFunction(found, 'now'), 'an object with the function now')),
  intercept: v.optional(
    v.custom<Interceptor>(
      (found) => hasFunction(found, 'received') || hasFunction(found, 'answering'),
      'an object with the function received or answering',
    ),
  ),
} satisfies Record<keyof Omit<EmulatorOptions, keyof Settings>, v.GenericSchema>;

function hasFunction(found: unknown, name: string): boolean {
  return typeof found === 'object' && found !== null && typeof Reflect.get(found, name) === 'function';
}

/**
 * Parses a client of an options file, whose members are in snake_case.
 * @throws OptionError if it is invalid
 */
export function parseClient(value: object): ClientOptions {
  // First by the names that the file has, so that a message names these.
  checkMembers(value, renameKeys(CLIENT, snakeCase));
  return checkMembers(renameKeys({ ...value }, camelCase), CLIENT);
}

/**
 * Parses a user of an options file.
 * @throws OptionError if it is invalid
 */
export function parseUser(value: object): UserOptions {
  return checkMembers(value, USER);
}

/**
 * Checks the library's options.
 * @throws OptionError
 */
export function checkOptions(options: EmulatorOptions): void {
  checkMembers(options, { ...START_OPTIONS, ...CHANGE });
  checkObjects('clients', options.clients, CLIENT);
  checkObjects('users', options.users, USER);
}

/** The value is not shown: it may be a secret. */
function checkObjects(option: string, values: unknown = [], members: Readonly<Record<string, v.GenericSchema>>): void {
  if (!Array.isArray(values) || values.some((value) => typeof value !== 'object' || value === null))
    throw new OptionError(`${option}: must be a list of objects`);
  for (const value of values) checkMembers(value, members, `${option}: `);
}
